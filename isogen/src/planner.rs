//! Plans the edits of an image: chooses the layout strategy and builds the plan.

use std::fmt;
use std::sync::Arc;

use crate::base::BaseImage;
use crate::edits::Edits;
use crate::error::{Error, KargsError, Result};
use crate::kargs::KargsEdit;
use crate::plan::{Patch, Plan, Segment};
use crate::source::Source;

/// How a changed image is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As the base: all changes are in its embed areas.
    InPlace,
    /// As the image describes its minimal form.
    Described,
    /// Anew, for this reason.
    Relayout(&'static str),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace => f.write_str("in place"),
            Self::Described => f.write_str("as the live image describes it"),
            Self::Relayout(reason) => write!(f, "laid out anew: {reason}"),
        }
    }
}

impl BaseImage {
    /// The image with changes: [in place](Self::plan_in_place) where they fit into its embed areas, the minimal form
    /// after its description where there is one, else [laid out anew](crate::relayout).
    ///
    /// # Errors
    ///
    /// Fails where a change is refused or the image has no area for it.
    pub fn plan(&self, edits: &Edits) -> Result<Plan> {
        match self.way(edits)? {
            Way::InPlace => self.plan_in_place(edits),
            Way::Described => self.plan_described(edits),
            Way::Relayout(reason) => self.plan_relayout(edits, reason),
        }
    }

    /// Which way [`plan`](Self::plan) takes for some edits, and why.
    ///
    /// # Errors
    ///
    /// Fails where a change is refused or the image has no area for it.
    pub fn way(&self, edits: &Edits) -> Result<Way> {
        if !edits.images.is_empty() {
            return Ok(Way::Relayout("an initrd image is added"));
        }
        self.check_complete(edits)?;
        match edits.archive.as_ref().map(|archive| self.archive_patches(archive)).transpose() {
            Err(Error::ArchiveTooLarge { .. }) => {
                return Ok(Way::Relayout("the archive is larger than its area"));
            }
            fitting => drop(fitting?),
        }
        if edits.kargs.is_some() || edits.minimal.is_some() {
            match self.require_kargs()?.patches(&self.edited_kargs(edits)?) {
                Err(Error::Kargs { reason: KargsError::TooLarge { .. }, .. }) => {
                    return Ok(Way::Relayout("the kernel arguments are longer than their areas"));
                }
                fitting => drop(fitting?),
            }
        }
        match &edits.minimal {
            None => Ok(Way::InPlace),
            Some(_) if self.volume().file(crate::miniso::PATH).is_some() => Ok(Way::Described),
            Some(_) => Ok(Way::Relayout("the image does not describe its minimal form")),
        }
    }

    /// The minimal form after `miniso.dat`, with the other edits in its areas.
    fn plan_described(&self, edits: &Edits) -> Result<Plan> {
        let minimal = self.minimal(None)?;
        let kargs = KargsEdit::Set(self.edited_kargs(edits)?);
        let edits = Edits { minimal: None, kargs: Some(kargs), ..edits.clone() };
        let image =
            Self::from_source(Source::new(self.source().name().to_owned(), minimal.len(), minimal.clone()))?;
        Ok(image.plan(&edits)?.resolved(&minimal))
    }

    /// The image with changes, all of them within its embed areas.
    ///
    /// # Errors
    ///
    /// Fails where a change does not fit, is refused, or the image has no area for it.
    pub fn plan_in_place(&self, edits: &Edits) -> Result<Plan> {
        self.check_complete(edits)?;
        let mut patches = Vec::new();
        if let Some(archive) = &edits.archive {
            patches.extend(self.archive_patches(archive)?);
        }
        if let Some(edit) = &edits.kargs {
            let kargs = self.require_kargs()?;
            patches.extend(kargs.patches(&kargs.edited(edit)?)?);
        }
        Plan::whole(Arc::clone(self.source())).patched(patches)
    }

    /// After an edit in place that was interrupted, only edits that replace all of its places make an image whole.
    pub(crate) fn check_complete(&self, edits: &Edits) -> Result<()> {
        let kargs =
            matches!(&edits.kargs, Some(KargsEdit::Set(_) | KargsEdit::Reset | KargsEdit::Default(_)));
        let whole = edits.archive.is_some() && (kargs || self.kargs().is_none());
        if self.is_interrupted() && !whole { Err(self.interrupted_error()) } else { Ok(()) }
    }

    pub(crate) fn archive_patches(&self, archive: &bytes::Bytes) -> Result<[Patch; 2]> {
        let area = self.require_ignition_area()?.extent;
        let len = archive.len() as u64;
        let Some(rest) = area.len().checked_sub(len) else {
            return Err(Error::ArchiveTooLarge {
                file: self.source().name().to_owned(),
                len,
                capacity: area.len(),
            });
        };
        // Zeros to the end of the area: a longer archive of before must not show behind a shorter one.
        Ok([
            Patch { offset: area.offset(), segment: Segment::Bytes(archive.clone()) },
            Patch { offset: area.offset() + len, segment: Segment::Zero(rest) },
        ])
    }
}
