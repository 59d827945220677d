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
            return Err(refused(&findings));
        }
        let Opened { image, version } =
            self.base.open(draft.architecture.as_ref().map(|it| it.value.as_str()))?;
        check_architecture(&draft, &image, &mut findings);
        let inputs = draft.inputs(&Surroundings { service, version });
        let inputs = match inputs {
            Ok(inputs) if !findings.is_fatal() => inputs,
            Ok(_) => return Err(refused(&findings)),
            Err(more) => {
                findings.append(more);
                return Err(refused(&findings));
            }
        };
        eprint!("{findings}");
        let images = ImageSet::new(image, inputs, &cache)?;
        Ok(Prepared { images, draft, findings, cache })
    }
}

/// Tells what was found, and gives the error that ends the command.
fn refused(findings: &Findings) -> anyhow::Error {
    eprint!("{findings}");
    let errors = findings.count(Severity::Error);
    anyhow::anyhow!("{errors} error{}: nothing was written", if errors == 1 { "" } else { "s" })
}

/// An image of another processor than the manifests want boots none of the machines.
fn check_architecture(draft: &Draft, image: &Arc<isogen::BaseImage>, findings: &mut Findings) {
    let (Some(given), Some(found)) = (&draft.architecture, processor_of(image)) else { return };
    if CpuArchitecture::from_name(&given.value) != Some(found) {
        let message = format!("the machines are {}, and the live image is for {found}", given.value);
        findings.error(given.place.clone(), message);
    }
}
