//! A search for the largest full mesh in a graph of hosts: a set of hosts in which each host is linked to every other
//! host.
//!
//! This is the maximum clique problem, for which no polynomial algorithm is known. The graph comes from the reports of
//! agents, so the search is bounded:
//!
//! 1. Hosts with the same closed neighbourhood (the host and its neighbours) form a mesh if the neighbourhood contains
//!    no other host. Such a mesh has no edges to other hosts. This step finds all meshes of a graph that is a union of
//!    separate meshes.
//! 2. Of the remaining hosts, the host with the fewest edges is dropped until the rest is a mesh. If several hosts have
//!    the fewest edges, the last of them is dropped.
//! 3. Step 2 is repeated within the neighbourhood of each remaining host, in order, for as many hosts as [`MAX_WORK`]
//!    allows.
//!
//! Steps 2 and 3 are skipped if the remaining hosts have too few edges for a mesh of the size already found: a mesh of
//! `k` hosts needs `k` hosts with at least `k - 1` edges.
//!
//! With `n` hosts, steps 1 and 2 take O(`n²`) time, and step 3 takes O(`n² + MAX_WORK`). The result is always a mesh
//! and depends only on the graph. It is the largest mesh if the graph is a union of separate meshes, or has at most six
//! hosts. If several meshes have this size, the result is the mesh with the first hosts. In other graphs, a larger mesh
//! may exist.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::host_set::HostSet;

/// Maximum number of pairs of hosts that step 3 visits in one graph. This is enough for the neighbourhoods of all hosts
/// if there are 62 hosts, or for the neighbourhood of one host if there are 500.
const MAX_WORK: usize = 250_000;

/// Returns the largest full mesh that the search finds.
///
/// `neighbours` contains the closed neighbourhood of each host. An edge must be in the neighbourhoods of both hosts.
pub(super) fn largest_mesh(neighbours: &[HostSet]) -> HostSet {
    let mut classes = BTreeMap::<&HostSet, HostSet>::new();
    for (host, closed) in neighbours.iter().enumerate() {
        classes.entry(closed).or_insert_with(|| HostSet::empty(neighbours.len())).insert(host);
    }
    let mut rest = HostSet::empty(neighbours.len());
    let mut largest = HostSet::empty(neighbours.len());
    for (closed, members) in classes {
        if *closed == members {
            largest = larger(largest, members);
        } else {
            rest.union(&members);
        }
    }
    largest_of(neighbours, rest, largest)
}

/// Returns the largest of `largest` and the meshes that steps 2 and 3 find among the hosts in `rest`.
fn largest_of(neighbours: &[HostSet], rest: HostSet, largest: HostSet) -> HostSet {
    let bound = bound(neighbours, &rest);
    if bound == 0 || bound < largest.len() {
        return largest;
    }
    let mut largest = larger(largest, thinned(neighbours, rest.clone()));
    let pairs = rest.len().saturating_mul(rest.len()).max(1);
    for closed in rest.iter().take(MAX_WORK / pairs).filter_map(|host| neighbours.get(host)) {
        largest = larger(largest, thinned(neighbours, closed.clone()));
    }
    largest
}

/// Returns the larger set. Of two sets of equal size, returns the one with the first hosts.
fn larger(one: HostSet, other: HostSet) -> HostSet {
    let is_first = match other.len().cmp(&one.len()) {
        std::cmp::Ordering::Equal => other.iter().lt(one.iter()),
        order => order.is_gt(),
    };
    if is_first { other } else { one }
}

/// Returns an upper bound for the size of a mesh of these hosts.
fn bound(neighbours: &[HostSet], hosts: &HostSet) -> usize {
    let mut lens: Vec<usize> =
        hosts.iter().filter_map(|host| neighbours.get(host)).map(HostSet::len).collect();
    lens.sort_unstable_by_key(|len| Reverse(*len));
    lens.iter().zip(1..).take_while(|(len, count)| *len >= count).count()
}

/// Drops the host with the fewest edges, or the last of several such hosts, until the rest is a mesh.
fn thinned(neighbours: &[HostSet], mut hosts: HostSet) -> HostSet {
    let mut degrees: Vec<(usize, usize)> = hosts
        .iter()
        .map(|host| {
            let mut inside = hosts.clone();
            neighbours.get(host).into_iter().for_each(|closed| inside.intersect(closed));
            (host, inside.len())
        })
        .collect();
    while let Some((position, (host, len))) =
        degrees.iter().copied().enumerate().min_by_key(|(_, (host, len))| (*len, Reverse(*host)))
    {
        if len == degrees.len() {
            break;
        }
        hosts.remove(host);
        degrees.swap_remove(position);
        if let Some(closed) = neighbours.get(host) {
            for (_, len) in degrees.iter_mut().filter(|(other, _)| closed.contains(*other)) {
                *len -= 1;
            }
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the closed neighbourhood of each host in a graph with these edges.
    fn graph(host_count: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<HostSet> {
        let mut neighbours = vec![HostSet::empty(host_count); host_count];
        (0..host_count).for_each(|host| neighbours[host].insert(host));
        for (one, other) in edges {
            neighbours[one].insert(other);
            neighbours[other].insert(one);
        }
        neighbours
    }

    fn is_mesh(neighbours: &[HostSet], hosts: &[usize]) -> bool {
        hosts.iter().all(|one| hosts.iter().all(|other| neighbours[*one].contains(*other)))
    }

    /// Returns the largest mesh by trying all subsets of the hosts. Of several largest meshes, returns the mesh with
    /// the first hosts.
    fn expected(neighbours: &[HostSet]) -> Vec<usize> {
        let hosts = |subset: u32| (0..neighbours.len()).filter(move |host| subset & (1 << host) != 0);
        let subsets = (0..1 << neighbours.len()).map(|subset| hosts(subset).collect::<Vec<_>>());
        let meshes = subsets.filter(|hosts| is_mesh(neighbours, hosts));
        meshes.min_by_key(|hosts| (Reverse(hosts.len()), hosts.clone())).unwrap()
    }

    fn mesh(neighbours: &[HostSet]) -> Vec<usize> {
        largest_mesh(neighbours).iter().collect()
    }

    /// Returns all graphs with `host_count` hosts.
    fn graphs(host_count: usize) -> impl Iterator<Item = Vec<HostSet>> {
        let pairs: Vec<_> = (0..host_count).flat_map(|one| (0..one).map(move |other| (other, one))).collect();
        (0..1_u32 << pairs.len()).map(move |edges| {
            let edges = pairs.iter().enumerate().filter(|(index, _)| edges & (1 << index) != 0);
            graph(host_count, edges.map(|(_, pair)| *pair))
        })
    }

    #[test]
    fn result_for_a_small_graph_is_the_largest_mesh() {
        for neighbours in (0..=6).flat_map(graphs) {
            assert_eq!(mesh(&neighbours), expected(&neighbours), "{neighbours:?}");
        }
    }

    #[test]
    fn result_for_a_union_of_meshes_is_the_largest_mesh() {
        // Hosts with the same number modulo 7 form a mesh. For remainder 2, only the hosts after host 20 do. Hosts from
        // 270 on have no edges.
        let neighbours = graph(
            300,
            (0..270)
                .flat_map(|one| (0..one).map(move |other| (other, one)))
                .filter(|(one, other)| (one % 7 == other % 7) && (one % 7 != 2 || *one > 20)),
        );
        assert_eq!(mesh(&neighbours), (0..270).step_by(7).collect::<Vec<_>>());
    }

    #[test]
    fn missing_edge_excludes_one_host() {
        let pairs = |one| (0..one).map(move |other| (other, one));
        let neighbours = graph(100, (0..100).flat_map(pairs).filter(|pair| *pair != (40, 60)));
        assert_eq!(mesh(&neighbours), (0..100).filter(|host| *host != 60).collect::<Vec<_>>());
    }

    #[test]
    fn every_result_is_a_mesh() {
        let is_edge = |one: usize, other: usize| (one * one + other * other + one * other) % 13 < 9;
        for host_count in [7, 30, 70, 200] {
            let edges = (0..host_count).flat_map(|one| (0..one).map(move |other| (other, one)));
            let neighbours = graph(host_count, edges.filter(|(one, other)| is_edge(*one, *other)));
            let hosts = mesh(&neighbours);
            assert!(hosts.len() >= 3 && is_mesh(&neighbours, &hosts), "{host_count} {hosts:?}");
        }
    }
}
