//! Interfaces that are built on themselves.

use std::collections::HashMap;

use super::finding::{Draft, Rule, shown};
use super::interface::{Part, USER_SPACE, parts};
use super::state::{Found, State};

/// Most interfaces between one and itself that a message names.
const MAX_NAMED: usize = 4;

/// What an interface is built on, by its place among the interfaces.
struct Built<'a> {
    on: Vec<(usize, Part<'a>)>,
    /// How many of these are not known to be fine.
    open: usize,
}

/// Reports each circle of ports and bases once, at its first interface.
///
/// What is built on things that are all fine is fine. What remains leads into a circle, along whichever of its parts
/// remain.
pub(super) fn check(state: &State, found: &mut Found) {
    let built = rest(state);
    let is_open = |index: usize| built.get(index).is_some_and(|it| it.open > 0);
    let next =
        |index: usize| built.get(index).filter(|it| it.open > 0)?.on.iter().find(|(part, _)| is_open(*part));
    let mut seen = vec![false; built.len()];
    for start in 0..built.len() {
        let mut way = Vec::new();
        let mut index = start;
        while let Some((part, _)) = next(index)
            && let Some(seen) = seen.get_mut(index).filter(|seen| !**seen)
        {
            *seen = true;
            way.push(index);
            index = *part;
        }
        let mut circle: Vec<usize> = way.into_iter().skip_while(|it| *it != index).collect();
        let first = circle.iter().enumerate().min_by_key(|(_, it)| **it).map_or(0, |(place, _)| place);
        circle.rotate_left(first);
        report(state, &circle, circle.first().and_then(|first| next(*first)), found);
    }
}

fn report(state: &State, circle: &[usize], part: Option<&(usize, Part)>, found: &mut Found) {
    let mut names = circle.iter().filter_map(|index| state.interfaces.get(*index)).map(|it| &*it.name);
    let (Some(first), Some((_, part))) = (names.next(), part) else { return };
    let mut between: Vec<String> = names.map(shown).collect();
    if between.len() > MAX_NAMED {
        between.truncate(MAX_NAMED);
        between.push("others".to_owned());
    }
    let by_way =
        if between.is_empty() { String::new() } else { format!(", by way of {}", between.join(", ")) };
    let message = format!("{} is built on itself{by_way}", shown(first));
    found.push(Draft::error(Rule::UnknownInterface, &part.path, message).of(first));
}

/// The interfaces with their parts.
fn rest<'a>(state: &State<'a>) -> Vec<Built<'a>> {
    // Names of switches that are not the kernel's are shared with what is theirs.
    let is_kernels = |index: usize| state.interfaces.get(index).is_some_and(|it| !it.is_kind(USER_SPACE));
    let known: HashMap<&str, usize> =
        state.interfaces.iter().enumerate().map(|(index, interface)| (&*interface.name, index)).collect();
    let mut users = vec![Vec::new(); state.interfaces.len()];
    let mut built: Vec<Built> = Vec::with_capacity(users.len());
    for (index, interface) in state.interfaces.iter().enumerate() {
        let mut on: Vec<(usize, Part)> = Vec::new();
        for part in parts(interface) {
            let place = known.get(&*part.name).filter(|place| is_kernels(index) && is_kernels(**place));
            if let Some((place, users)) = place.and_then(|place| Some((*place, users.get_mut(*place)?))) {
                users.push(index);
                on.push((place, part));
            }
        }
        built.push(Built { open: on.len(), on });
    }
    let mut fine: Vec<usize> =
        built.iter().enumerate().filter(|(_, it)| it.open == 0).map(|(index, _)| index).collect();
    while let Some(index) = fine.pop() {
        for user in users.get(index).into_iter().flatten() {
            let Some(built) = built.get_mut(*user) else { continue };
            built.open = built.open.saturating_sub(1);
            if built.open == 0 {
                fine.push(*user);
            }
        }
    }
    built
}
