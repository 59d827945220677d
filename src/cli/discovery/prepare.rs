//! From options to a set of images, with all findings told.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use ignition::network::KeyfileCache;
use ignition::report::Severity;

use super::base::{BaseOptions, Opened, processor_of};
use super::inputs::{InfraEnvOptions, ServiceOptions};
use crate::discovery::{Draft, Findings, Given, ImageSet, Place, Surroundings};
use crate::images::CpuArchitecture;

/// Bytes of keyfiles that are kept between looking at networks and making images of them.
const CACHE: usize = 512 << 20;

/// The options that are easily swapped, for a message.
pub(super) const FROM_PLAN: &str = "--base and --from-plan";

#[derive(Debug, Args)]
pub(super) struct SourceOptions {
    /// Take everything from a plan file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["manifests", "infra_env_id", "pull_secret"])]
    pub(super) from_plan: Option<String>,
    /// Fail on warnings too
    #[arg(long, conflicts_with = "from_plan")]
    strict: bool,
    #[command(flatten)]
    pub(super) base: BaseOptions,
    #[command(flatten)]
    infra_env: InfraEnvOptions,
    #[command(flatten)]
    service: ServiceOptions,
}

/// A set of images, ready to be made.
pub(super) struct Prepared {
    pub(super) images: ImageSet,
    pub(super) draft: Draft,
    pub(super) findings: Findings,
    pub(super) cache: KeyfileCache,
}

impl SourceOptions {
    /// Reads and checks everything. What is found is told; with an error among it, that is the end.
    pub(super) fn prepare(&self) -> Result<Prepared> {
        let service = self.service.service()?;
        let (mut draft, mut findings) = self.infra_env.draft()?;
        if let Some(arch) = self.base.arch {
            draft.architecture = Some(Given::new(arch.to_string(), Place::of("--arch")));
        }
        let cache = KeyfileCache::new(CACHE);
        findings.append(draft.check(&cache));
        if findings.is_fatal() {
            return Err(self.refused(&findings));
        }
        let Opened { image, version } =
            self.base.open(draft.architecture.as_ref().map(|it| it.value.as_str()))?;
        check_architecture(&draft, &image, &mut findings);
        let inputs = draft.inputs(&Surroundings { service, version });
        let inputs = match inputs {
            Ok(inputs) if !self.is_failure(&findings) => inputs,
            Ok(_) => return Err(self.refused(&findings)),
            Err(more) => {
                findings.append(more);
                return Err(self.refused(&findings));
            }
        };
        eprint!("{findings}");
        let images = ImageSet::new(image, inputs, &cache)?;
        Ok(Prepared { images, draft, findings, cache })
    }

    fn is_failure(&self, findings: &Findings) -> bool {
        findings.is_fatal() || self.strict && findings.count(Severity::Warning) > 0
    }

    /// Prints the findings, and returns the error that ends the command.
    fn refused(&self, findings: &Findings) -> anyhow::Error {
        eprint!("{findings}");
        let errors = findings.count(Severity::Error);
        let warnings = if self.strict { findings.count(Severity::Warning) } else { 0 };
        let strictly = match warnings {
            0 => String::new(),
            1 => "1 warning, which --strict makes an error".to_owned(),
            _ => format!("{warnings} warnings, which --strict makes errors"),
        };
        let parts = [if errors > 0 { count(errors, "error") } else { String::new() }, strictly];
        let counts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        anyhow::anyhow!("{}: nothing was written", counts.join(", "))
    }
}

/// A number of errors or warnings.
fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// An image of another processor than the manifests want boots none of the machines.
fn check_architecture(draft: &Draft, image: &Arc<isogen::BaseImage>, findings: &mut Findings) {
    let (Some(given), Some(found)) = (&draft.architecture, processor_of(image)) else { return };
    if CpuArchitecture::from_name(&given.value) != Some(found) {
        let message = format!("the machines are {}, and the live image is for {found}", given.value);
        findings.error(given.place.clone(), message);
    }
}
