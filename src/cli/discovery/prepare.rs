//! The first steps of `discovery create` and `plan`: read the inputs, check them, and open the base image.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use ignition::network::KeyfileCache;
use ignition::report::Severity;

use super::base::{BaseOptions, OpenedBase};
use super::inputs::NOTHING_WRITTEN;
use super::inputs::{InfraEnvOptions, ServiceOptions};
use crate::cli::grouped_findings::report_lines;
use crate::cli::refusal::{RefusedInputs, with_remedies};
use crate::images::library::image_architecture;
use discovery::{Checked, DiscoveryReport, Draft, ImageSet, Located, ServiceContext, SourceLocation};
use inventory::catalogue::CpuArchitecture;

/// Maximum size of the cached keyfiles, in bytes. The check of the networks generates the keyfiles, and the images need
/// them again.
const CACHE: usize = 512 << 20;

/// Two options that users may swap, for a message.
pub(super) const FROM_PLAN: &str = "--base and --from-plan";

#[derive(Debug, Args)]
pub(super) struct SourceOptions {
    /// Make the image from a plan file; - is stdin
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

/// The checked inputs of the images.
pub(super) struct PreparedInputs {
    pub(super) images: ImageSet,
    pub(super) draft: Draft,
    pub(super) findings: DiscoveryReport,
    pub(super) cache: KeyfileCache,
}

impl SourceOptions {
    /// Reads and checks all inputs. Prints the findings, and returns an error if a finding is fatal.
    pub(super) fn prepare(&self) -> Result<PreparedInputs> {
        let service = self.service.service()?;
        let (mut draft, mut findings) = self.infra_env.draft()?;
        if let Some(arch) = self.base.arch {
            draft.architecture = Some(Located::new(arch.to_string(), SourceLocation::whole("--arch")));
        }
        let cache = KeyfileCache::new(CACHE);
        if let Some(reason) = service.base_url.unreachable_reason() {
            findings.warning(SourceLocation::whole("--service-url"), reason);
        }
        // Check before the base image is opened, which may have to be downloaded.
        let checked = draft.check(&cache);
        if self.is_failure(&findings) || self.is_failure(&checked) {
            findings.append(checked);
            return Err(self.refusal(findings));
        }
        let OpenedBase { image, version } =
            self.base.open(draft.architecture.as_ref().map(|it| it.value.as_str()))?;
        check_architecture(&draft, &image, &mut findings);
        let inputs = match draft.inputs(&ServiceContext { service, version }, &cache) {
            Ok(Checked { value, warnings }) => {
                findings.append(warnings);
                Some(value)
            }
            Err(more) => {
                findings.append(with_remedies(more));
                None
            }
        };
        let Some(inputs) = inputs.filter(|_| !self.is_failure(&findings)) else {
            return Err(self.refusal(findings));
        };
        eprint!("{}", report_lines(&findings));
        let images = ImageSet::new(image, inputs, &cache)?;
        Ok(PreparedInputs { images, draft, findings, cache })
    }

    fn is_failure(&self, findings: &DiscoveryReport) -> bool {
        findings.is_fatal() || self.strict && findings.count(Severity::Warning) > 0
    }

    /// Prints the findings and returns the error that ends the command.
    fn refusal(&self, findings: DiscoveryReport) -> anyhow::Error {
        RefusedInputs::print_and_refuse(findings, self.strict, NOTHING_WRITTEN).into()
    }
}

/// Adds an error if the architecture of the base image differs from the manifests. Such an image does not boot on the
/// machines.
fn check_architecture(draft: &Draft, image: &Arc<isogen::BaseImage>, findings: &mut DiscoveryReport) {
    let (Some(expected), Some(actual)) = (&draft.architecture, image_architecture(image)) else { return };
    if CpuArchitecture::from_name(&expected.value) != Some(actual) {
        let message = format!("the machines are {}, but the base image is for {actual}", expected.value);
        findings.error(expected.place.clone(), message);
    }
}
