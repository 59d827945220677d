//! Selection of the `NMStateConfig`s of an infra-env.

use std::collections::BTreeSet;

use super::selector::Selector;
use super::{Manifests, Object};
use crate::DiscoveryReport;

const SELECTOR: &str = "spec.nmStateConfigLabelSelector";

/// Returns the `NMStateConfig`s that an infra-env selects, and reports those that it seems to leave out by mistake.
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
    let (near, far): (Vec<&Object>, Vec<&Object>) =
        manifests.objects_of_kind("NMStateConfig").partition(|object| share_namespace(infra_env, object));
    let is_selected = |object: &&Object| selector.selects_some(&object.labels());
    let (chosen, others): (Vec<&Object>, Vec<&Object>) = near.into_iter().partition(is_selected);
    let is_free = |object: &&Object| !is_selected_by_another(manifests, infra_env, object);
    let (misplaced, strangers): (Vec<&Object>, Vec<&Object>) =
        far.into_iter().filter(is_free).partition(is_selected);
    // Those in the namespace of another infra-env are a mistake of that one.
    let taken: BTreeSet<&str> = manifests.objects_of_kind("InfraEnv").map(Object::namespace).collect();
    let left_out = UnselectedConfigs {
        others: others.into_iter().filter(is_free).collect(),
        misplaced,
        strangers: strangers.into_iter().filter(|object| !taken.contains(object.namespace())).collect(),
    };
    left_out.report((infra_env, &selector), chosen.is_empty(), findings);
    chosen
}

/// Returns whether another infra-env selects an `NMStateConfig`.
fn is_selected_by_another(manifests: &Manifests, infra_env: &Object, config: &Object) -> bool {
    let others = manifests.objects_of_kind("InfraEnv").filter(|other| !std::ptr::eq(*other, infra_env));
    others.filter(|other| share_namespace(other, config)).any(|other| {
        let selector = other.get(SELECTOR).and_then(|value| Selector::parse(value).ok());
        selector.is_some_and(|selector| selector.selects_some(&config.labels()))
    })
}

/// Returns whether two objects are in the same namespace. An object without a namespace is in all of them.
fn share_namespace(one: &Object, other: &Object) -> bool {
    one.namespace() == other.namespace() || one.namespace().is_empty() || other.namespace().is_empty()
}

/// The `NMStateConfig`s that no infra-env selects.
struct UnselectedConfigs<'a> {
    /// Those in the namespace of the infra-env.
    others: Vec<&'a Object>,
    /// Those in another namespace whose labels the infra-env selects.
    misplaced: Vec<&'a Object>,
    /// Those in a namespace without an infra-env.
    strangers: Vec<&'a Object>,
}

impl UnselectedConfigs<'_> {
    /// Reports them: an image is useless if hosts lack their networks.
    fn report(
        &self,
        (infra_env, selector): (&Object, &Selector),
        is_empty: bool,
        findings: &mut DiscoveryReport,
    ) {
        let place = || infra_env.location_of(SELECTOR);
        if is_empty && self.misplaced.is_empty() {
            match self.others.first().or(self.strangers.first()) {
                Some(example) => {
                    findings.error(place(), selects_none_message((infra_env, selector), example));
                    return;
                }
                None if selector.is_empty() => {}
                None => findings.warning(place(), "matches no NMStateConfig: the hosts use DHCP"),
            }
        }
        for object in &self.others {
            let message = mismatch(selector, object);
            let place = object.location_of("metadata.labels");
            if selector.has_key_of(&object.labels()) {
                findings.error(place, message);
            } else {
                findings.warning(place, message);
            }
        }
        for object in &self.misplaced {
            let message = format!(
                "the InfraEnv selects these labels, but only in its own namespace {:?}, so this host is left out",
                infra_env.namespace()
            );
            findings.error(object.location_of("metadata.namespace"), message);
        }
    }
}

/// Returns the message about a selector that selects nothing.
fn selects_none_message((infra_env, selector): (&Object, &Selector), example: &Object) -> String {
    let what = match infra_env.get(SELECTOR) {
        None => "is missing, so it selects no NMStateConfig",
        Some(_) if selector.is_empty() => "is empty, so it selects no NMStateConfig",
        Some(_) => "selects no NMStateConfig",
    };
    let unmet = selector.unmet_besides_match(&example.labels());
    let unmet = unmet.map(|unmet| format!(", but the selector also requires {unmet}")).unwrap_or_default();
    let name = [example.namespace(), example.name()].join("/");
    format!("{what}; for example, {} has {}{unmet}", name.trim_start_matches('/'), labels(example))
}

/// Returns the reason why a selector does not select an object.
fn mismatch(selector: &Selector, object: &Object) -> String {
    let labels = labels(object);
    match selector.unmet_besides_match(&object.labels()) {
        Some(unmet) => {
            format!("the InfraEnv's selector also requires {unmet}, so this host with {labels} is left out")
        }
        None if object.labels().is_empty() => {
            "the InfraEnv's selector requires labels, and this host without labels is left out".to_owned()
        }
        None => format!("the InfraEnv's selector does not match {labels}, so this host is left out"),
    }
}

/// Returns the labels of an object, for a message.
fn labels(object: &Object) -> String {
    let labels: Vec<String> = object.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
    if labels.is_empty() { "no labels".to_owned() } else { labels.join(", ") }
}
