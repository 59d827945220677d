//! Which of several faults of a document is told: always the same one.
//!
//! The generator keeps interfaces in hash tables and stops at the first fault that it meets, which may be another one every
//! time. So a document that it refuses is taken apart: interfaces in the order of what they build on and of their names,
//! then routes, rules and the rest. The shortest beginning of that which is refused has its fault in its last part; where
//! that part alone is fine, the same search finds what it does not go together with. What remains is refused for one
//! reason, in the generator's own words.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nmstate::{BondMode, ErrorKind, Interface, InterfaceType, NetworkState, NmstateError};
use serde_json::Value;

use super::NetworkError;
use super::generate::configure;

/// Most parts of a document that is taken apart. Each step of the search may cost as much as the whole document.
const MAX_PARTS: usize = 2000;

/// Most parts that are found to contradict each other before the search gives up.
const MAX_CONFLICT: usize = 8;

/// How often the generator is asked about parts that name one another, of which it may name any.
const SAMPLES: usize = 32;

/// Most interfaces that one name is looked up to. Several may share a profile's name, which is a fault when it is used.
const MAX_NAMESAKES: usize = 4;

/// Tells why a state is refused.
pub(super) fn first(state: &NetworkState) -> NetworkError {
    let search = Search::new(state);
    if search.len() > MAX_PARTS {
        let count = search.len() - 1;
        return refused(
            None,
            format!("one of {count} interfaces, routes and rules is wrong, too many to tell which"),
        );
    }
    search.run().unwrap_or_else(|| refused(None, "parts of the document contradict each other".to_owned()))
}

fn refused(interface: Option<&str>, message: String) -> NetworkError {
    let source = NmstateError::new(ErrorKind::InvalidArgument, message);
    NetworkError::Generate { interface: interface.map(str::to_owned), source }
}

struct Search<'a> {
    state: &'a NetworkState,
    /// By name and type.
    interfaces: Vec<&'a Interface>,
    /// What each interface refers to.
    references: Vec<Vec<usize>>,
    /// The interfaces, each after those that it refers to. Only those that refer to each other share a group.
    groups: Vec<Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(state: &'a NetworkState) -> Self {
        let mut interfaces: Vec<&Interface> = state.interfaces.iter().collect();
        interfaces.sort_by_cached_key(|it| (it.name().to_owned(), it.iface_type().to_string()));
        let references = references(&interfaces);
        let groups = groups(&references);
        Self { state, interfaces, references, groups }
    }

    fn routes(&self) -> &'a [nmstate::RouteEntry] {
        self.state.routes.config.as_deref().unwrap_or_default()
    }

    fn rules(&self) -> &'a [nmstate::RouteRuleEntry] {
        self.state.rules.config.as_deref().unwrap_or_default()
    }

    /// How many parts there are: interfaces, routes, rules, and the rest as one.
    fn len(&self) -> usize {
        self.groups.len() + self.routes().len() + self.rules().len() + 1
    }

    fn run(&self) -> Option<NetworkError> {
        let mut needed = BTreeSet::new();
        let mut end = self.len();
        while end > 0 && needed.len() < MAX_CONFLICT {
            // Without the parts before `end` those needed are fine, with them they are not.
            let part = boundary(end, |count| self.fails(&(0..count).chain(needed.iter().copied()).collect()));
            needed.insert(part);
            end = part;
            if self.fails(&needed) {
                return Some(self.tell(&needed));
            }
        }
        None
    }

    fn fails(&self, parts: &BTreeSet<usize>) -> bool {
        configure(&self.build(parts)).is_err()
    }

    /// A state of some parts, with all interfaces that they refer to; what is no interface may refer to any.
    fn build(&self, parts: &BTreeSet<usize>) -> NetworkState {
        let mut state = NetworkState::new();
        let (mut routes, mut rules) = (Vec::new(), Vec::new());
        let mut interfaces = Vec::new();
        for part in parts {
            if let Some(group) = self.groups.get(*part) {
                interfaces.extend(group);
                continue;
            }
            interfaces.extend(0..self.interfaces.len());
            let part = part - self.groups.len();
            let rule = part.checked_sub(self.routes().len());
            routes.extend(self.routes().get(part).cloned());
            rules.extend(rule.and_then(|rule| self.rules().get(rule)).cloned());
            if rule == Some(self.rules().len()) {
                state.description.clone_from(&self.state.description);
                state.hostname.clone_from(&self.state.hostname);
                state.dns.clone_from(&self.state.dns);
                state.ovsdb.clone_from(&self.state.ovsdb);
                state.ovn.clone_from(&self.state.ovn);
            }
        }
        for index in closure(&self.references, interfaces, &BTreeSet::new()) {
            if let Some(interface) = self.interfaces.get(index) {
                state.interfaces.push((*interface).clone());
            }
        }
        state.routes.config = Some(routes).filter(|routes| !routes.is_empty());
        state.rules.config = Some(rules).filter(|rules| !rules.is_empty());
        state
    }

    /// Why parts are refused that are fine without any of them.
    fn tell(&self, parts: &BTreeSet<usize>) -> NetworkError {
        let state = self.build(parts);
        let groups: Vec<&[usize]> =
            parts.iter().filter_map(|it| self.groups.get(*it).map(Vec::as_slice)).collect();
        let last = match groups.last() {
            Some([index]) if parts.len() == groups.len() => self.interfaces.get(*index).copied(),
            _ => None,
        };
        let is_one = parts.len() == 1 && groups.iter().all(|group| group.len() == 1);
        let own = last.filter(|_| is_one).and_then(|it| listed(it, &state).or_else(|| feature(it, &state)));
        let samples = if is_one { 1 } else { SAMPLES };
        let error = own.or_else(|| {
            let errors = (0..samples).filter_map(|_| configure(&state).err());
            errors.min_by_key(|error| match error {
                NetworkError::Generate { source, .. } => source.to_string(),
                other => other.to_string(),
            })
        });
        match error {
            Some(NetworkError::Generate { source, .. }) => {
                NetworkError::Generate { interface: last.map(|it| it.name().to_owned()), source }
            }
            Some(other) => other,
            None => refused(None, "the document is refused, but none of its parts is".to_owned()),
        }
    }
}

/// The part with which the beginning of a list begins to fail, when its first `end` parts do and none do not.
fn boundary(end: usize, fails: impl Fn(usize) -> bool) -> usize {
    let (mut good, mut bad) = (0, end);
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if fails(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    good
}

/// Faults for which the generator lists names out of a hash table.
fn listed(interface: &Interface, state: &NetworkState) -> Option<NetworkError> {
    let name = interface.name();
    let ports: BTreeSet<&str> = interface.ports().unwrap_or_default().into_iter().collect();
    let message = match interface {
        Interface::Bond(bond) => {
            let config = bond.bond.as_ref()?;
            if let (Some(ports), Some(configured)) = (&config.port, &config.ports_config) {
                let ports: BTreeSet<&str> = ports.iter().map(String::as_str).collect();
                let configured: BTreeSet<&str> = configured.iter().map(|port| port.name.as_str()).collect();
                let differing: Vec<&str> = ports.symmetric_difference(&configured).copied().collect();
                if !differing.is_empty() {
                    let names = differing.join(", ");
                    let message = format!("bond {name} has {names} in only one of port and ports-config");
                    return Some(refused(None, message));
                }
            }
            (config.mode != Some(BondMode::ActiveBackup))
                .then(|| format!("bond {name} is not of the mode active-backup"))?
        }
        _ => format!("{} {name} is no bond", interface.iface_type()),
    };
    let is_infiniband = |port: &&&str| {
        state
            .interfaces
            .get_iface(port, InterfaceType::InfiniBand)
            .is_some_and(|it| it.iface_type() == InterfaceType::InfiniBand)
    };
    let found: Vec<&str> = ports.iter().filter(is_infiniband).copied().collect();
    let message = format!("{message} and cannot have the InfiniBand ports {}", found.join(", "));
    (!found.is_empty()).then(|| refused(None, message))
}

/// A wrong one of several features of an interface, which the generator goes through in the order of a hash table.
fn feature(interface: &Interface, state: &NetworkState) -> Option<NetworkError> {
    let features = interface.base_iface().ethtool.as_ref()?.feature.as_ref()?;
    let features: BTreeMap<String, bool> =
        features.into_iter().map(|(name, on)| (name.clone(), *on)).collect();
    let with = |from: usize, to: usize| {
        let some: HashMap<String, bool> =
            features.iter().skip(from).take(to - from).map(|(name, on)| (name.clone(), *on)).collect();
        let mut state = state.clone();
        let found = state.interfaces.iter_mut().find(|it| it.name() == interface.name());
        if let Some(ethtool) = found.and_then(|it| it.base_iface_mut().ethtool.as_mut()) {
            ethtool.feature = Some(some.into());
        }
        configure(&state).err()
    };
    if with(0, 0).is_some() {
        return None;
    }
    let wrong = boundary(features.len(), |count| with(0, count).is_some());
    with(wrong, wrong + 1)
}

/// What each interface refers to: all others whose names are anywhere among its values.
fn references(interfaces: &[&Interface]) -> Vec<Vec<usize>> {
    let mut known: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, interface) in interfaces.iter().enumerate() {
        let base = interface.base_iface();
        let others = base.alt_names.iter().flatten().map(|it| it.name.as_str());
        for name in others.chain(base.profile_name.as_deref()).chain([interface.name()]) {
            let named = known.entry(name).or_default();
            if named.len() < MAX_NAMESAKES && !named.contains(&index) {
                named.push(index);
            }
        }
    }
    let refers = |(index, interface): (usize, &&Interface)| {
        let mut found = BTreeSet::new();
        texts(&serde_json::to_value(interface).unwrap_or_default(), &mut |text| {
            found.extend(known.get(text).into_iter().flatten().filter(|it| **it != index));
        });
        found.into_iter().collect()
    };
    interfaces.iter().enumerate().map(refers).collect()
}

/// All texts in a value that the generator has written, which is not deep.
fn texts(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

/// Some things and all that they refer to, but not what is there before.
fn closure(references: &[Vec<usize>], mut pending: Vec<usize>, before: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while let Some(next) = pending.pop() {
        if !before.contains(&next) && found.insert(next) {
            pending.extend(references.get(next).into_iter().flatten());
        }
    }
    found
}

/// Things after those that they refer to, and otherwise in their order. A group of several is a cycle, with what hangs on
/// it.
fn groups(references: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut missing: Vec<usize> = references.iter().map(Vec::len).collect();
    let mut users = vec![Vec::new(); references.len()];
    for (user, used) in
        references.iter().enumerate().flat_map(|(user, used)| used.iter().map(move |it| (user, *it)))
    {
        users.get_mut(used).into_iter().for_each(|users: &mut Vec<usize>| users.push(user));
    }
    let mut placed = BTreeSet::new();
    let mut rest: BTreeSet<usize> = (0..references.len()).collect();
    let mut ready: BTreeSet<usize> = rest.iter().copied().filter(|it| missing.get(*it) == Some(&0)).collect();
    let mut groups = Vec::new();
    while let Some(start) = ready.first().or(rest.first()).copied() {
        let group = closure(references, vec![start], &placed);
        for index in &group {
            ready.remove(index);
            rest.remove(index);
            placed.insert(*index);
            for user in users.get(*index).into_iter().flatten() {
                let Some(missing) = missing.get_mut(*user) else { continue };
                *missing -= 1;
                if *missing == 0 && !group.contains(user) {
                    ready.insert(*user);
                }
            }
        }
        groups.push(group.into_iter().collect());
    }
    groups
}
