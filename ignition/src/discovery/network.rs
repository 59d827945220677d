//! The static network in a discovery config: the files of all machines that may boot the image, and the unit that chooses
//! among them.

use super::parts::Parts;
use crate::builder::{FileMode, UnitState};
use crate::network::{EntryKind, IgnitionFiles, NetworkEntry};

/// Puts them into a config, the unit enabled.
pub(super) fn add(network: &IgnitionFiles, parts: &mut Parts) {
    for NetworkEntry { path, kind } in &network.files {
        // Links are for initrds, which enable their units by them.
        if let EntryKind::File { mode, contents } = kind {
            parts.file(path, FileMode::from_bits(*mode).unwrap_or(FileMode::PRIVATE), contents);
        }
    }
    if let Some(unit) = &network.unit {
        parts.unit(unit.name, UnitState::Enabled, unit.contents);
    }
}
