//! Adds the static network to a discovery config: the files of all machines that may boot the image, and the unit that
//! selects the files of the booted machine.

use super::overrides::ComposeError;
use crate::builder::{ConfigBuilder, FileMode, UnitState};
use crate::network::{EntryKind, IgnitionFiles, NetworkEntry};

/// Adds the files of the static network and enables the unit that selects the files of the booted machine.
pub(crate) fn add_static_network(
    network: &IgnitionFiles,
    builder: &mut ConfigBuilder,
) -> Result<(), ComposeError> {
    for NetworkEntry { path, kind } in &network.files {
        // Skip links. They enable units in an initrd, while a config enables units without links.
        if let EntryKind::File { mode, contents } = kind {
            let Some(bits) = FileMode::from_bits(*mode) else {
                return Err(ComposeError::NetworkFileMode { path: path.clone(), mode: *mode });
            };
            builder.replace_file(path, bits, contents);
        }
    }
    if let Some(unit) = &network.unit {
        builder.replace_unit(unit.name, UnitState::Enabled, unit.contents);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_network_files_with_special_permission_bits() {
        let kind = EntryKind::File { mode: 0o4755, contents: b"".as_slice().into() };
        let files = vec![NetworkEntry { path: "/etc/a".to_owned(), kind }];
        let error =
            add_static_network(&IgnitionFiles { files, unit: None }, &mut ConfigBuilder::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "file /etc/a of the static network has the mode 4755, expected at most 777"
        );
    }
}
