//! The selection of `NMStateConfig` manifests by an `InfraEnv` manifest.
//!
//! An `NMStateConfig` describes the static network of one host. An `InfraEnv` selects the configs in its own namespace
//! whose labels match its `nmStateConfigLabelSelector`. A host whose config is not selected boots without its static
//! network. Therefore this module also reports configs that the user probably meant to select.

use std::collections::BTreeSet;

use super::selector::Selector;
use super::{Manifests, Object};
use crate::DiscoveryReport;

const SELECTOR: &str = "spec.nmStateConfigLabelSelector";

/// Returns the `NMStateConfig`s that `infra_env` selects. Adds a finding for each config that it probably misses by
/// mistake. If the selector is invalid, adds an error and returns no configs.
pub(super) fn select<'a>(
    manifests: &'a Manifests,
    infra_env: &Object,
    findings: &mut DiscoveryReport,
) -> Vec<&'a Object> {
    let selector = match infra_env.get(SELECTOR).map(Selector::parse) {
        None => Selector::default(),
        Some(Ok(selector)) => selector,
        Some(Err((path, reason))) => {
            let path = if path.is_empty() { SELECTOR.to_owned() } else { format!("{SELECTOR}.{path}") };
            findings.error(infra_env.location_of(&path), reason);
            return Vec::new();
        }
    };
    let (local, remote): (Vec<&Object>, Vec<&Object>) =
        manifests.objects_of_kind("NMStateConfig").partition(|config| share_namespace(infra_env, config));
    let has_selected_labels = |config: &&Object| selector.selects_some(&config.labels());
    let (selected, mismatched): (Vec<&Object>, Vec<&Object>) =
        local.into_iter().partition(has_selected_labels);
    let is_unselected = |config: &&Object| !is_selected_by_another(manifests, infra_env, config);
    let (misplaced, unrelated): (Vec<&Object>, Vec<&Object>) =
        remote.into_iter().filter(is_unselected).partition(has_selected_labels);
    // Do not report an unrelated config in the namespace of another infra-env, because it concerns only that
    // infra-env.
    let namespaces: BTreeSet<&str> = manifests.objects_of_kind("InfraEnv").map(Object::namespace).collect();
    let unselected = UnselectedConfigs {
        mismatched: mismatched.into_iter().filter(is_unselected).collect(),
        misplaced,
        orphaned: unrelated.into_iter().filter(|config| !namespaces.contains(config.namespace())).collect(),
    };
    unselected.report((infra_env, &selector), selected.is_empty(), findings);
    selected
}

/// Returns `true` if an infra-env other than `infra_env` selects `config`.
fn is_selected_by_another(manifests: &Manifests, infra_env: &Object, config: &Object) -> bool {
    let others = manifests.objects_of_kind("InfraEnv").filter(|other| !std::ptr::eq(*other, infra_env));
    others.filter(|other| share_namespace(other, config)).any(|other| {
        let selector = other.get(SELECTOR).and_then(|value| Selector::parse(value).ok());
        selector.is_some_and(|selector| selector.selects_some(&config.labels()))
    })
}

/// Returns `true` if two objects are in the same namespace, or if one of them has no namespace.
fn share_namespace(one: &Object, other: &Object) -> bool {
    one.namespace() == other.namespace() || one.namespace().is_empty() || other.namespace().is_empty()
}

/// The `NMStateConfig`s that no infra-env selects, grouped by their relation to one infra-env.
struct UnselectedConfigs<'a> {
    /// Configs in the namespace of the infra-env. The labels do not match its selector.
    mismatched: Vec<&'a Object>,
    /// Configs in another namespace. The labels match the selector of the infra-env.
    misplaced: Vec<&'a Object>,
    /// Configs in a namespace without any infra-env. The labels do not match the selector of the infra-env.
    orphaned: Vec<&'a Object>,
}

impl UnselectedConfigs<'_> {
    /// Adds the findings. If the infra-env selects no config at all, one finding about its selector replaces the
    /// findings about mismatched configs.
    fn report(
        &self,
        (infra_env, selector): (&Object, &Selector),
        selects_none: bool,
        findings: &mut DiscoveryReport,
    ) {
        let selector_location = || infra_env.location_of(SELECTOR);
        if selects_none && self.misplaced.is_empty() {
            match self.mismatched.first().or(self.orphaned.first()) {
                Some(example) => {
                    let message = selects_none_message((infra_env, selector), example);
                    findings.error(selector_location(), message);
                    return;
                }
                None if selector.is_empty() => {}
                None => {
                    findings.warning(selector_location(), "matches no NMStateConfig: the hosts use DHCP");
                }
            }
        }
        for config in &self.mismatched {
            let message = mismatch_message(selector, config);
            let location = config.location_of("metadata.labels");
            // A label with a required key shows that the user probably meant to select the config.
            if selector.has_key_of(&config.labels()) {
                findings.error(location, message);
            } else {
                findings.warning(location, message);
            }
        }
        for config in &self.misplaced {
            let message = format!(
                "the InfraEnv selects these labels, but only in its own namespace {:?}, so this host is left out",
                infra_env.namespace()
            );
            findings.error(config.location_of("metadata.namespace"), message);
        }
    }
}

/// Returns the message for a selector that selects no config. `example` is an unselected config to compare with.
fn selects_none_message((infra_env, selector): (&Object, &Selector), example: &Object) -> String {
    let problem = match infra_env.get(SELECTOR) {
        None => "is missing, so it selects no NMStateConfig",
        Some(_) if selector.is_empty() => "is empty, so it selects no NMStateConfig",
        Some(_) => "selects no NMStateConfig",
    };
    let unmet = selector.unmet_besides_match(&example.labels());
    let unmet = unmet.map(|unmet| format!(", but the selector also requires {unmet}")).unwrap_or_default();
    let name = [example.namespace(), example.name()].join("/");
    format!("{problem}; for example, {} has {}{unmet}", name.trim_start_matches('/'), format_labels(example))
}

/// Returns the message for a config whose labels do not match the selector.
fn mismatch_message(selector: &Selector, config: &Object) -> String {
    let labels = format_labels(config);
    match selector.unmet_besides_match(&config.labels()) {
        Some(unmet) => {
            format!("the InfraEnv's selector also requires {unmet}, so this host with {labels} is left out")
        }
        None if config.labels().is_empty() => {
            "the InfraEnv's selector requires labels, and this host without labels is left out".to_owned()
        }
        None => format!("the InfraEnv's selector does not match {labels}, so this host is left out"),
    }
}

/// Formats the labels of an object for a message, such as `site=a, rack=1`.
fn format_labels(object: &Object) -> String {
    let labels: Vec<String> = object.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") }
}
