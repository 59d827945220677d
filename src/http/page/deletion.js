// The dialog that deletes an infra-env and, if the user agrees, its hosts.

import { api } from "./api.js";
import { byId, plural, showProblem, tell } from "./dom.js";

/** Maximum number of hosts in one response. */
const PAGE = 500;

const dialog = byId("deletion");
const slot = (name) => dialog.querySelector(`[data-slot=${name}]`);
const problem = dialog.querySelector(".problem");
const choice = byId("delete-hosts");

/** The identity of the most recent opening of the dialog. */
let current;

/** Asks the user to confirm, then deletes an infra-env. Calls `onDeleted` afterwards. */
export function confirmDeletion(infraEnv, onDeleted) {
  const opening = (current = {});
  // Closing the dialog stops the deletion, even if the user opens the dialog again.
  const isWanted = () => dialog.open && current === opening;
  slot("name").textContent = infraEnv.name;
  slot("progress").textContent = "";
  showProblem(problem, null);
  offerHosts([]);
  let hosts = readHosts(infraEnv, isWanted);
  byId("delete").disabled = false;
  byId("keep").onclick = () => dialog.close();
  byId("delete").onclick = async () => {
    byId("delete").disabled = true;
    showProblem(problem, null);
    try {
      const list = await hosts;
      if (!isWanted() || !mayDelete(list)) return;
      await deleteHosts(infraEnv, list, isWanted);
      await api.delete(infraEnv);
      if (isWanted()) dialog.close();
      await onDeleted();
      tell(`${infraEnv.name} was deleted.`);
    } catch (refusal) {
      if (!isWanted()) return showProblem(byId("problem"), `${infraEnv.name}: ${refusal.message}`);
      slot("progress").textContent = "";
      showProblem(problem, refusal);
      // The hosts have changed: some may be deleted, and others may have registered.
      hosts = readHosts(infraEnv, isWanted);
    } finally {
      if (current === opening) byId("delete").disabled = false;
    }
  };
  dialog.showModal();
}

/** Reads the hosts and offers to delete them. */
function readHosts(infraEnv, isWanted) {
  const hosts = readAll(infraEnv).then((all) => {
    if (isWanted()) offerHosts(all);
    return all;
  });
  // Ignore the error here, because it is shown after a click.
  hosts.catch(() => {});
  return hosts;
}

async function readAll(infraEnv) {
  const hosts = [];
  for (let page; page === undefined || page.length === PAGE; ) {
    page = await api.hostsWithoutReports(infraEnv, PAGE, hosts.length);
    hosts.push(...page);
  }
  return hosts;
}

function offerHosts(hosts) {
  const bound = hosts.filter(({ cluster_id }) => cluster_id).length;
  choice.checked = false;
  choice.closest("label").hidden = hosts.length === 0;
  slot("hosts").textContent = `Also delete its ${plural(hosts.length, "host")}`;
  slot("bound").hidden = bound === 0;
  slot("bound").textContent =
    `Bound to a cluster: ${bound} of ${hosts.length}. The service removes them from it, even during an installation.`;
}

/** Returns `true` if the infra-env has no hosts, or the user chose to delete them. */
function mayDelete(hosts) {
  if (hosts.length === 0 || choice.checked) return true;
  showProblem(problem, `Nothing was deleted: the infra-env still has ${plural(hosts.length, "host")}. Select the box to delete them too.`);
  choice.focus();
  return false;
}

async function deleteHosts(infraEnv, hosts, isWanted) {
  const progress = (count) => `Hosts deleted: ${count} of ${hosts.length}.`;
  for (const [index, host] of hosts.entries()) {
    slot("progress").textContent = `Deleting host ${index + 1} of ${hosts.length}.`;
    try {
      await api.deleteHost(infraEnv, host.id);
    } catch (refusal) {
      // A 404 means that another client deleted the host.
      if (refusal.status !== 404) {
        throw new Error(`${progress(index)} Deleting host ${host.requested_hostname || host.id} failed: ${refusal.message}`);
      }
    }
    if (!isWanted()) throw new Error(`${progress(index + 1)} The dialog was closed.`);
  }
}
