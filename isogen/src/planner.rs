//! Plans edits of a base image: chooses the layout strategy and builds the plan.

use std::fmt;
use std::sync::Arc;

use crate::base::BaseImage;
use crate::edits::Edits;
use crate::error::Result;
use crate::kargs::KargsEdit;
use crate::miniso;
use crate::plan::Plan;
use crate::relayout::oversized_edits;

/// The layout of an edited image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutStrategy {
    /// In-place edit: the layout of the base image, with changes in its embed areas only.
    InPlace,
    /// The minimal ISO that the base image describes in `miniso.dat`, with changes in its embed areas only.
    DescribedMinimal,
    /// A [re-layout](BaseImage::relayout), with the reason why the other strategies are not possible.
    Relayout(&'static str),
}

impl fmt::Display for LayoutStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace => f.write_str("in place"),
            Self::DescribedMinimal => f.write_str("as described by the base image"),
            Self::Relayout(reason) => write!(f, "re-layout: {reason}"),
        }
    }
}

impl BaseImage {
    /// Plans the image with `edits`. The layout strategy is the one that [`layout_strategy`](Self::layout_strategy)
    /// returns.
    ///
    /// # Errors
    ///
    /// Returns an error if an edit is not valid or the image has no embed area for it.
    pub fn plan(&self, edits: &Edits) -> Result<Plan> {
        match self.layout_strategy(edits)? {
            LayoutStrategy::InPlace => self.patch_areas(edits),
            LayoutStrategy::DescribedMinimal => self.plan_described_minimal(edits),
            LayoutStrategy::Relayout(reason) => oversized_edits::plan_relayout(self, edits, reason),
        }
    }

    /// Returns the layout strategy for `edits`: an in-place edit if all edits fit into the embed areas; the described
    /// minimal ISO if the caller wants a minimal ISO and the other edits fit into its areas; otherwise a re-layout.
    ///
    /// # Errors
    ///
    /// Returns an error if an edit is not valid or the image has no embed area for it.
    pub fn layout_strategy(&self, edits: &Edits) -> Result<LayoutStrategy> {
        self.check_not_interrupted(edits)?;
        if !edits.images.is_empty() {
            return Ok(LayoutStrategy::Relayout("an initrd image is added"));
        }
        if let Some(archive) = &edits.archive
            && archive.len() as u64 > self.require_ignition_area()?.extent.len()
        {
            return Ok(LayoutStrategy::Relayout("the archive is larger than its area"));
        }
        if (edits.kargs.is_some() || edits.minimal.is_some())
            && !self.require_kargs()?.fits(&self.edited_kargs(edits)?)
        {
            return Ok(LayoutStrategy::Relayout("the kernel arguments are longer than their areas"));
        }
        Ok(match &edits.minimal {
            None => LayoutStrategy::InPlace,
            Some(_) if self.volume().file(miniso::MINISO_PATH).is_none() => {
                LayoutStrategy::Relayout("the image does not describe its minimal form")
            }
            Some(_) if self.is_minimal_verified()? => LayoutStrategy::DescribedMinimal,
            Some(_) => LayoutStrategy::Relayout("the image's description of its minimal form is wrong"),
        })
    }

    /// Plans an in-place edit.
    ///
    /// # Errors
    ///
    /// Returns an error if an edit does not fit into its embed area, if it is not valid, or if the image has no embed
    /// area for it.
    pub fn plan_in_place(&self, edits: &Edits) -> Result<Plan> {
        self.check_not_interrupted(edits)?;
        self.patch_areas(edits)
    }

    fn patch_areas(&self, edits: &Edits) -> Result<Plan> {
        let mut patches = Vec::new();
        if let Some(archive) = &edits.archive {
            patches.extend(self.require_ignition_area()?.patches(self.source().name(), archive)?);
        }
        if let Some(edit) = &edits.kargs {
            let kargs = self.require_kargs()?;
            patches.extend(kargs.patches(&kargs.apply_edit(edit)?)?);
        }
        Plan::from_source(Arc::clone(self.source())).patched_structures(patches)
    }

    /// Returns an error if an in-place edit of the image was interrupted and `edits` do not overwrite all embed areas.
    fn check_not_interrupted(&self, edits: &Edits) -> Result<()> {
        let kargs =
            matches!(&edits.kargs, Some(KargsEdit::Set(_) | KargsEdit::Reset | KargsEdit::Default(_)));
        let overwrites_all = edits.archive.is_some() && (kargs || self.kargs().is_none());
        if overwrites_all { Ok(()) } else { self.require_no_interrupted_edit() }
    }
}
