//! Kernel-argument areas with any description and any contents: edits fit or are refused, change nothing else, and what
//! was put in is read back.

#![no_main]

use arbitrary::Arbitrary;
use isogen::{BaseImage, Edits, KargsEdit, KargsOperations, Source};
use isogen_fuzz::{BASES, Changed};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    base: u8,
    contents: Vec<u8>,
    size: Option<u16>,
    fill: Option<(char, char)>,
    edit: Edit,
}

#[derive(Debug, Arbitrary)]
enum Edit {
    Set(String),
    Reset,
    Current(Operations),
    Default(Operations),
}

#[derive(Debug, Arbitrary)]
struct Operations {
    delete: Vec<String>,
    append: Vec<String>,
    replace: Vec<(String, String, String)>,
}

impl Operations {
    fn into_kargs(self) -> KargsOperations {
        let replace = self.replace.into_iter().map(|(key, old, new)| format!("{key}={old}={new}"));
        KargsOperations { delete: self.delete, append: self.append, replace: replace.collect() }
    }
}

impl Edit {
    fn into_kargs(self) -> KargsEdit {
        match self {
            Self::Set(text) => KargsEdit::Set(text),
            Self::Reset => KargsEdit::Reset,
            Self::Current(operations) => KargsEdit::Current(operations.into_kargs()),
            Self::Default(operations) => KargsEdit::Default(operations.into_kargs()),
        }
    }
}

/// A base with the contents of its areas and, where it has one, its description overwritten.
fn image(input: &Input) -> Result<BaseImage, isogen::Error> {
    let with_kargs: Vec<_> = BASES.iter().filter(|base| !base.truth.kargs.is_empty()).collect();
    let base = with_kargs[usize::from(input.base) % with_kargs.len()];
    let mut changed = Changed::new(base.bytes.clone());
    for area in &base.truth.kargs {
        let len = input.contents.len().min(area.len as usize);
        changed.put(area.offset, input.contents[..len].to_vec());
    }
    if let Some(json) = base.truth.files.get("coreos/kargs.json")
        && let Some((pad, end)) = input.fill
    {
        let at = json.offset as usize;
        let text = String::from_utf8_lossy(&base.bytes[at..at + json.len as usize]);
        // Two bytes of each are enough: JSON has a short form for those.
        let escaped = |character: char| format!("\\u{:04x}", u32::from(character) & 0xFFFF);
        let mut text = text.replace('#', &escaped(pad)).replace("\\n\"", &format!("{}\"", escaped(end)));
        if let Some(size) = input.size {
            let rest = text.rfind("\"size\"").unwrap_or(text.len());
            text.truncate(rest);
            text.push_str(&format!("\"size\": {size}}}"));
        }
        let mut bytes = text.into_bytes();
        bytes.resize(json.len as usize, b' ');
        changed.put(json.offset, bytes);
    }
    BaseImage::from_source(changed.into_source())
}

fuzz_target!(|input: Input| {
    let Ok(image) = image(&input) else { return };
    let Some(kargs) = image.kargs() else { return };
    let edit = input.edit.into_kargs();
    let Ok(text) = kargs.edited(&edit) else {
        assert!(image.plan_in_place(&Edits::new().kargs(edit)).is_err());
        return;
    };
    let Ok(plan) = image.plan_in_place(&Edits::new().kargs(edit)) else {
        let end = kargs.areas()[0].end.unwrap_or('\n').len_utf8();
        assert!((text.len() + end) as u64 > kargs.area_len(), "{text:?} fits");
        return;
    };
    for change in plan.changes_in_place().unwrap() {
        let change = isogen::Extent::new(change.offset, change.segment.len()).unwrap();
        assert!(kargs.areas().iter().any(|area| area.extent.contains(change)), "{change}");
    }
    let edited = BaseImage::from_source(Source::new("edited".into(), plan.len(), plan)).unwrap();
    // Odd fillers and ends cannot be told from arguments that end in them.
    let odd = |area: &isogen::kargs::KargsArea| {
        let (pad, end) = (area.pad.unwrap_or('#'), area.end.unwrap_or('\n'));
        !pad.is_ascii() || text.ends_with(end) || (pad == end && text.ends_with(pad))
    };
    if !kargs.areas().iter().any(odd) {
        assert_eq!(edited.kargs().unwrap().current().unwrap(), text);
    }
});
