//! Kernel argument areas with any description and any contents. An edit is either refused, or changes only bytes of the
//! areas and can be read back.

#![no_main]

use arbitrary::Arbitrary;
use isogen::{BaseImage, Edits, Error, KargsEdit, KargsError, KargsOperations, Source};
use isogen_fuzz::{BASES, PatchedSource};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Input {
    base: u8,
    contents: Vec<u8>,
    size: Option<u16>,
    fill: Option<(char, char)>,
    edit: EditInput,
}

#[derive(Debug, Arbitrary)]
enum EditInput {
    Set(String),
    Reset,
    Current(OperationsInput),
    Default(OperationsInput),
}

#[derive(Debug, Arbitrary)]
struct OperationsInput {
    delete: Vec<String>,
    append: Vec<String>,
    replace: Vec<(String, String, String)>,
}

impl OperationsInput {
    fn into_kargs(self) -> KargsOperations {
        let replace = self.replace.into_iter().map(|(key, old, new)| format!("{key}={old}={new}"));
        KargsOperations { delete: self.delete, append: self.append, replace: replace.collect() }
    }
}

impl EditInput {
    fn into_kargs(self) -> KargsEdit {
        match self {
            Self::Set(text) => KargsEdit::Set(text),
            Self::Reset => KargsEdit::Reset,
            Self::Current(operations) => KargsEdit::Current(operations.into_kargs()),
            Self::Default(operations) => KargsEdit::Default(operations.into_kargs()),
        }
    }
}

/// Returns a base image with overwritten areas, and with an overwritten description if it has one.
fn image_with_areas(input: &Input) -> Result<BaseImage, isogen::Error> {
    let with_kargs: Vec<_> = BASES.iter().filter(|base| !base.mastered.kargs.is_empty()).collect();
    let base = with_kargs[usize::from(input.base) % with_kargs.len()];
    let mut changed = PatchedSource::new(base.bytes.clone());
    for area in &base.mastered.kargs {
        let len = input.contents.len().min(area.len as usize);
        changed.put(area.offset, input.contents[..len].to_vec());
    }
    if let Some(json) = base.mastered.files.get("coreos/kargs.json")
        && let Some((pad, end)) = input.fill
    {
        let at = json.offset as usize;
        let text = String::from_utf8_lossy(&base.bytes[at..at + json.len as usize]);
        // The low 16 bits of each character are enough, because JSON has a short escape for them.
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
    let Ok(image) = image_with_areas(&input) else { return };
    let Some(kargs) = image.kargs() else { return };
    let edit = input.edit.into_kargs();
    let expected = match &edit {
        KargsEdit::Set(text) => Some(text.trim().to_owned()),
        KargsEdit::Reset => kargs.default().ok().map(str::to_owned),
        _ => None,
    };
    let plan = match image.plan_in_place(&Edits::new().kargs(edit)) {
        Ok(plan) => plan,
        Err(Error::Kargs { reason: KargsError::TooLarge { len, capacity }, .. }) => {
            assert!(len > capacity && capacity as u64 == kargs.area_len());
            return;
        }
        Err(error) => {
            assert!(!matches!(error, Error::Internal { .. }), "{error}");
            return;
        }
    };
    for change in plan.changes_in_place().unwrap() {
        let change = isogen::Extent::new(change.offset, change.segment.len()).unwrap();
        assert!(kargs.areas().iter().any(|area| area.extent.contains(change)), "{change}");
    }
    let edited = BaseImage::from_source(Source::new("edited".into(), plan.len(), plan)).unwrap();
    let Some(text) = expected else { return };
    // Do not compare the arguments if an area has unusual fill characters, because such characters at the end of the
    // arguments cannot be distinguished from the fill.
    let odd = |area: &isogen::kargs::KargsArea| {
        let (pad, end) = (area.pad.unwrap_or('#'), area.end.unwrap_or('\n'));
        !pad.is_ascii() || text.ends_with(end) || (pad == end && text.ends_with(pad))
    };
    if !kargs.areas().iter().any(odd) {
        assert_eq!(edited.kargs().unwrap().current().unwrap(), text);
    }
});
