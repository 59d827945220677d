//! Downloads of image ranges from a server while agents check in.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::measure::BenchRound;
use super::server::BenchServer;
use super::workload::RATE;
use crate::client::Target;
use crate::figures::{Better, Measure, float};
use crate::fleet::{Client, Script, Until, run};
use crate::random::Random;
use crate::servers::length;
use crate::usage::CpuTime;
use crate::{base, infra_env, interrupt};

/// Length of a range in bytes.
const RANGE: u64 = 16 << 10;

/// The images of several infra-envs, with their lengths in bytes.
#[derive(Debug)]
pub(crate) struct ServerImages(Vec<(Arc<Target>, u64)>);

impl ServerImages {
    /// Requests a byte of every image and downloads the first one, so that the measurements do not include first reads.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes of an image are wrong.
    pub(crate) fn read(server: &BenchServer, infra_envs: &[String]) -> Result<Self> {
        let mut images = Vec::new();
        for id in infra_envs {
            let target = server.target().at(&format!("/i/{id}/full.iso"));
            images.push((Arc::new(target.clone()), length(&target)?));
        }
        // Download only the first image: all images contain the same base image, whose pages are then in the page
        // cache.
        if let Some((target, total)) = images.first() {
            let (sent_digest, reported_digest) =
                (base::download(target, *total, None)?, infra_env::digest(target)?);
            ensure!(
                sent_digest == reported_digest,
                "kindling reports SHA-256 {reported_digest}, but sends bytes with {sent_digest}"
            );
        }
        Ok(Self(images))
    }

    /// Measures random ranges of all images over the given number of connections.
    ///
    /// # Errors
    ///
    /// Returns an error if a range is wrong.
    pub(crate) fn read_ranges(
        &self,
        server: &BenchServer,
        connections: u32,
        round: BenchRound,
    ) -> Result<Vec<Measure>> {
        let mut clients = Vec::new();
        for (number, (target, total)) in (0..connections).zip(self.0.iter().cycle()) {
            interrupt::check()?;
            let random = Random::new(Random::new(round.number << 32 | u64::from(number)).next());
            clients.push(Client::open(target, *total, Script::Random { len: RANGE, random })?);
        }
        let before = CpuTime::read(server.pid())?;
        let tally = run(clients, Until::Elapsed(round.time))?;
        let cpu = CpuTime::read(server.pid())?.since(&before);
        let requests = float(tally.requests);
        let rate = requests / tally.elapsed.as_secs_f64();
        Ok(vec![
            Measure { name: RATE, unit: "requests/s", better: Better::Higher, value: rate },
            Measure {
                name: "CPU time of the image server",
                unit: "\u{b5}s/request",
                better: Better::Neither,
                value: cpu.as_secs_f64() * 1e6 / requests,
            },
        ])
    }
}
