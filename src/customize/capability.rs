//! What an image can be asked to do, and what a customisation asks of it.
//!
//! A caller that reads the user's files itself should call [`Needs::check`] first: a missing feature is then
//! reported even when a file is missing too.

use std::collections::BTreeSet;

/// The directive that [`Needs::destination_console`] looks for.
const CONSOLE: &str = "console";

/// What one image supports, as its `features.json` and its embed areas say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The live system reads `/etc/coreos/installer.d` (feature `installer-config`).
    pub installer_config: bool,
    /// The directives that the embedded installer knows (feature `installer-config-directives`).
    pub installer_directives: BTreeSet<String>,
    /// The live system reads keyfiles from its initrd (feature `live-initrd-network`).
    pub live_initrd_network: bool,
    /// The image has areas for kernel arguments.
    pub live_kargs: bool,
}

/// What a customisation needs of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// A console for the installed system is set.
    pub destination_console: bool,
    /// Network settings are given.
    pub network: bool,
    /// Options for the installer are given, or a config for the installed system.
    pub installer_config: bool,
    /// Kernel arguments of the live system are edited.
    pub live_kargs: bool,
}

/// Something that the image does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("This OS image does not support customizing {what}.", what = self.what())]
#[non_exhaustive]
pub enum Unsupported {
    /// Its installer does not know the `console` directive.
    DestinationConsole,
    /// Its initrd does not pick up keyfiles.
    Network,
    /// Its live system does not read installer config files.
    InstallerConfig,
    /// It has no areas for kernel arguments.
    LiveKargs,
}

impl Unsupported {
    fn what(self) -> &'static str {
        match self {
            Self::DestinationConsole => "the destination console",
            Self::Network => "network settings",
            Self::InstallerConfig => "installer configuration",
            Self::LiveKargs => "live kernel arguments",
        }
    }
}

impl Needs {
    /// Compares what is needed with what the image has.
    ///
    /// # Errors
    ///
    /// Names the first thing that is missing.
    pub fn check(self, image: &Capabilities) -> Result<(), Unsupported> {
        let console = image.installer_directives.contains(CONSOLE);
        let needs = [
            (self.destination_console, console, Unsupported::DestinationConsole),
            (self.network, image.live_initrd_network, Unsupported::Network),
            (self.installer_config, image.installer_config, Unsupported::InstallerConfig),
            (self.live_kargs, image.live_kargs, Unsupported::LiveKargs),
        ];
        match needs.into_iter().find(|(needed, present, _)| *needed && !present) {
            Some((_, _, missing)) => Err(missing),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_need_has_its_message() {
        let none = Needs::default();
        let cases = [
            (Needs { destination_console: true, ..none }, "the destination console"),
            (Needs { network: true, ..none }, "network settings"),
            (Needs { installer_config: true, ..none }, "installer configuration"),
            (Needs { live_kargs: true, ..none }, "live kernel arguments"),
        ];
        for (needs, what) in cases {
            let error = needs.check(&Capabilities::default()).unwrap_err();
            let expected = format!("This OS image does not support customizing {what}.");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_full_image_satisfies_every_need_and_an_empty_one_no_needs() {
        let image = Capabilities {
            installer_config: true,
            installer_directives: BTreeSet::from(["console".to_owned()]),
            live_initrd_network: true,
            live_kargs: true,
        };
        let all =
            Needs { destination_console: true, network: true, installer_config: true, live_kargs: true };
        assert_eq!(all.check(&image), Ok(()));
        assert_eq!(Needs::default().check(&Capabilities::default()), Ok(()));
    }
}
