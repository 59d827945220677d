//! Prints the properties of an image and its embedded config: `cargo run --example inspect -- IMAGE.iso`.

use std::error::Error;
use std::fmt::Write;

use ignition::summary::ConfigSummary;
use isogen::BaseImage;

pub(crate) fn describe(path: &str) -> Result<String, Box<dyn Error>> {
    let image = BaseImage::open(path)?;
    let properties = image.inspect()?;
    let mut text = String::new();
    writeln!(text, "{}, format of {}", properties.volume.id, properties.generation)?;
    let layout = properties.relayout_reason.as_deref().unwrap_or("as it was mastered");
    writeln!(text, "layout: {layout}")?;
    if let Some(config) = properties.ignition_area.as_ref().and_then(|area| area.config.as_deref()) {
        let summary = ConfigSummary::parse(config)?;
        writeln!(text, "config: {}", serde_json::to_string(&summary)?)?;
    }
    for check in image.verify()? {
        writeln!(text, "{}: {:?}", check.name, check.outcome)?;
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: inspect IMAGE.iso")?;
    print!("{}", describe(&path)?);
    Ok(())
}
