//! The features that an image supports, and the features that a customisation needs.
//!
//! Callers should call [`RequiredFeatures::check`] before they read the user's files. The user then sees the error
//! about a missing feature first, even if a file is missing too.

use std::collections::BTreeSet;

/// The installer directive that [`RequiredFeatures::destination_console`] requires.
const CONSOLE: &str = "console";

/// The features of one image, from its `features.json` and its embed areas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether the live system reads `/etc/coreos/installer.d` (feature `installer-config`).
    pub installer_config: bool,
    /// The directives that the embedded installer supports (feature `installer-config-directives`).
    pub installer_directives: BTreeSet<String>,
    /// Whether the live system reads keyfiles from the initrd (feature `live-initrd-network`).
    pub live_initrd_network: bool,
    /// Whether the image has embed areas for kernel arguments. Always `false` for an initrd.
    pub live_kargs: bool,
}

/// The features that a customisation needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredFeatures {
    /// Whether the options set a console for the installed system.
    pub destination_console: bool,
    /// Whether the options contain network settings.
    pub network: bool,
    /// Whether the options configure the installer or the installed system.
    pub installer_config: bool,
    /// Whether the options edit kernel arguments of the live system.
    pub live_kargs: bool,
}

/// A feature that the image does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("This OS image does not support customizing {what}.", what = self.description())]
#[non_exhaustive]
pub enum UnsupportedFeature {
    /// The installer does not support the `console` directive.
    DestinationConsole,
    /// The initrd does not read keyfiles.
    Network,
    /// The live system does not read installer config files.
    InstallerConfig,
    /// The image has no embed areas for kernel arguments.
    LiveKargs,
}

impl UnsupportedFeature {
    fn description(self) -> &'static str {
        match self {
            Self::DestinationConsole => "the destination console",
            Self::Network => "network settings",
            Self::InstallerConfig => "installer configuration",
            Self::LiveKargs => "live kernel arguments",
        }
    }
}

impl RequiredFeatures {
    /// Checks that an image has the required features.
    ///
    /// # Errors
    ///
    /// Returns the first missing feature as an error.
    pub fn check(self, image: &Capabilities) -> Result<(), UnsupportedFeature> {
        let console = image.installer_directives.contains(CONSOLE);
        let needs = [
            (self.destination_console, console, UnsupportedFeature::DestinationConsole),
            (self.network, image.live_initrd_network, UnsupportedFeature::Network),
            (self.installer_config, image.installer_config, UnsupportedFeature::InstallerConfig),
            (self.live_kargs, image.live_kargs, UnsupportedFeature::LiveKargs),
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
    fn each_missing_feature_has_its_message() {
        let none = RequiredFeatures::default();
        let cases = [
            (RequiredFeatures { destination_console: true, ..none }, "the destination console"),
            (RequiredFeatures { network: true, ..none }, "network settings"),
            (RequiredFeatures { installer_config: true, ..none }, "installer configuration"),
            (RequiredFeatures { live_kargs: true, ..none }, "live kernel arguments"),
        ];
        for (needs, what) in cases {
            let error = needs.check(&Capabilities::default()).unwrap_err();
            let expected = format!("This OS image does not support customizing {what}.");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn check_accepts_all_required_features_or_none() {
        let image = Capabilities {
            installer_config: true,
            installer_directives: BTreeSet::from(["console".to_owned()]),
            live_initrd_network: true,
            live_kargs: true,
        };
        let all = RequiredFeatures {
            destination_console: true,
            network: true,
            installer_config: true,
            live_kargs: true,
        };
        assert_eq!(all.check(&image), Ok(()));
        assert_eq!(RequiredFeatures::default().check(&Capabilities::default()), Ok(()));
    }
}
