//! Rejects interfaces that depend on themselves through their ports and base interfaces.

use std::collections::HashMap;

use super::finding::{DraftFinding, Rule, excerpt};
use super::interface::{Subordinate, USER_SPACE_TYPES, subordinates};
use super::state::{HostResult, HostState};

/// Maximum number of other interfaces of a cycle in a message.
const MAX_NAMED_INTERFACES: usize = 4;

/// The ports and base interfaces ("parts") of an interface, by index.
struct InterfaceParts<'a> {
    parts: Vec<(usize, Subordinate<'a>)>,
    /// Number of parts that may belong to a cycle.
    open_count: usize,
}

/// Reports each cycle of ports and base interfaces once, at its first interface.
///
/// An interface leads to no cycle if none of its parts leads to a cycle. From any other interface, the search follows
/// only parts that lead to a cycle, so it always ends in a cycle.
pub(super) fn check(state: &HostState, result: &mut HostResult) {
    let interfaces = interfaces_with_parts(state);
    let is_open = |index: usize| interfaces.get(index).is_some_and(|it| it.open_count > 0);
    let next = |index: usize| {
        interfaces.get(index).filter(|it| it.open_count > 0)?.parts.iter().find(|(part, _)| is_open(*part))
    };
    let mut visited = vec![false; interfaces.len()];
    for start in 0..interfaces.len() {
        let mut path = Vec::new();
        let mut index = start;
        while let Some((part, _)) = next(index)
            && let Some(visited) = visited.get_mut(index).filter(|visited| !**visited)
        {
            *visited = true;
            path.push(index);
            index = *part;
        }
        let mut cycle: Vec<usize> = path.into_iter().skip_while(|it| *it != index).collect();
        let first = cycle.iter().enumerate().min_by_key(|(_, it)| **it).map_or(0, |(position, _)| position);
        cycle.rotate_left(first);
        report_cycle(state, &cycle, cycle.first().and_then(|first| next(*first)), result);
    }
}

fn report_cycle(
    state: &HostState,
    cycle: &[usize],
    part: Option<&(usize, Subordinate)>,
    result: &mut HostResult,
) {
    let mut names = cycle.iter().filter_map(|index| state.interfaces.get(*index)).map(|it| &*it.name);
    let (Some(first), Some((_, part))) = (names.next(), part) else { return };
    let mut others: Vec<String> = names.map(excerpt).collect();
    if others.len() > MAX_NAMED_INTERFACES {
        others.truncate(MAX_NAMED_INTERFACES);
        others.push("others".to_owned());
    }
    let through =
        if others.is_empty() { String::new() } else { format!(", by way of {}", others.join(", ")) };
    let message = format!("{} is built on itself{through}", excerpt(first));
    result.push(DraftFinding::error(Rule::UnknownInterface, &part.path, message).with_interface(first));
}

/// Returns all interfaces with their parts. `open_count` is 0 for interfaces that do not lead to a cycle.
fn interfaces_with_parts<'a>(state: &HostState<'a>) -> Vec<InterfaceParts<'a>> {
    // Skip OVS bridges, OVS ports and IPsec connections: each may have the same name as a kernel interface, which is
    // not a cycle.
    let is_kernels =
        |index: usize| state.interfaces.get(index).is_some_and(|it| !it.has_type(USER_SPACE_TYPES));
    let index_by_name: HashMap<&str, usize> =
        state.interfaces.iter().enumerate().map(|(index, interface)| (&*interface.name, index)).collect();
    let mut users = vec![Vec::new(); state.interfaces.len()];
    let mut interfaces: Vec<InterfaceParts> = Vec::with_capacity(users.len());
    for (index, interface) in state.interfaces.iter().enumerate() {
        let mut parts: Vec<(usize, Subordinate)> = Vec::new();
        for part in subordinates(interface) {
            let Some(&part_index) = index_by_name.get(&*part.name) else { continue };
            if is_kernels(index)
                && is_kernels(part_index)
                && let Some(users) = users.get_mut(part_index)
            {
                users.push(index);
                parts.push((part_index, part));
            }
        }
        interfaces.push(InterfaceParts { open_count: parts.len(), parts });
    }
    let mut fine: Vec<usize> =
        interfaces.iter().enumerate().filter(|(_, it)| it.open_count == 0).map(|(index, _)| index).collect();
    while let Some(index) = fine.pop() {
        for user in users.get(index).into_iter().flatten() {
            let Some(user_parts) = interfaces.get_mut(*user) else { continue };
            user_parts.open_count = user_parts.open_count.saturating_sub(1);
            if user_parts.open_count == 0 {
                fine.push(*user);
            }
        }
    }
    interfaces
}
