//! Labels, annotations and finalizers of the kinds of `agent-install.openshift.io`.

/// API group of the kinds in [`crds`](super).
pub const GROUP: &str = "agent-install.openshift.io";

/// API version of the kinds in [`crds`](super).
pub const VERSION: &str = "v1beta1";

/// Label with the name of the InfraEnv whose image a host booted. Set on Agents; on BareMetalHosts, the user sets it.
pub const INFRA_ENV_LABEL: &str = "infraenvs.agent-install.openshift.io";

/// Label that marks Secrets and ConfigMaps that the controllers watch. The value is [`LABEL_TRUE`].
pub const WATCH_LABEL: &str = "agent-install.openshift.io/watch";

/// Label that marks Secrets, ConfigMaps and BareMetalHosts for the hub's backup. The value is [`LABEL_TRUE`].
pub const BACKUP_LABEL: &str = "cluster.open-cluster-management.io/backup";

/// Value of labels that mean "yes". Otherwise the label is absent.
pub const LABEL_TRUE: &str = "true";

/// Label with the name of the BareMetalHost that an Agent belongs to.
pub const BARE_METAL_HOST_LABEL: &str = "agent-install.openshift.io/bmh";

/// Label with the namespace of the ClusterDeployment that an Agent is bound to. The value is empty if the Agent is
/// unbound.
pub const CLUSTER_DEPLOYMENT_NAMESPACE_LABEL: &str = "agent-install.openshift.io/clusterdeployment-namespace";

/// Prefix of the labels of an Agent derived from its inventory.
pub const INVENTORY_LABEL_PREFIX: &str = "inventory.agent-install.openshift.io/";

/// Label with the value `true` if a disk of the host is an SSD.
pub const STORAGE_HAS_NON_ROTATIONAL_DISK_LABEL: &str =
    "inventory.agent-install.openshift.io/storage-hasnonrotationaldisk";

/// Label with the CPU architecture of the host.
pub const CPU_ARCHITECTURE_LABEL: &str = "inventory.agent-install.openshift.io/cpu-architecture";

/// Label with the value `true` if the CPU has the flag `vmx` or `svm`.
pub const CPU_VIRTUALIZATION_ENABLED_LABEL: &str = "inventory.agent-install.openshift.io/cpu-virtenabled";

/// Label with the manufacturer of the host.
pub const HOST_MANUFACTURER_LABEL: &str = "inventory.agent-install.openshift.io/host-manufacturer";

/// Label with the product name of the host.
pub const HOST_PRODUCT_NAME_LABEL: &str = "inventory.agent-install.openshift.io/host-productname";

/// Label with the value `true` if the host is a virtual machine.
pub const HOST_IS_VIRTUAL_LABEL: &str = "inventory.agent-install.openshift.io/host-isvirtual";

/// Annotation with the version of the labels with [`INVENTORY_LABEL_PREFIX`]. The value is
/// [`INVENTORY_LABELS_VERSION`].
pub const INVENTORY_LABELS_VERSION_ANNOTATION: &str = "inventory.agent-install.openshift.io/version";

/// Value of [`INVENTORY_LABELS_VERSION_ANNOTATION`].
pub const INVENTORY_LABELS_VERSION: &str = "0.1";

/// Prefix of the labels that an AgentClassification sets on matching Agents.
pub const CLASSIFICATION_LABEL_PREFIX: &str = "agentclassification.agent-install.openshift.io/";

/// Prefix of the value of a classification label if the query failed. Users must not use it.
pub const QUERY_ERROR_VALUE_PREFIX: &str = "QUERYERROR";

/// Annotation with the state of the host record, for backup and restore.
pub const AGENT_STATE_ANNOTATION: &str = "agent.agent-install.openshift.io/state";

/// Annotation with the inventory of the host record, for backup and restore.
pub const AGENT_INVENTORY_ANNOTATION: &str = "agent.agent-install.openshift.io/inventory";

/// Annotation with the installation stage of the host record, for backup and restore.
pub const AGENT_CURRENT_STAGE_ANNOTATION: &str = "agent.agent-install.openshift.io/current-stage";

/// Annotation with the role of the host record, for backup and restore.
pub const AGENT_ROLE_ANNOTATION: &str = "agent.agent-install.openshift.io/role";

/// Annotation with the validations of the host record, for backup and restore.
pub const AGENT_VALIDATIONS_INFO_ANNOTATION: &str = "agent.agent-install.openshift.io/validations-info";

/// Annotation that keeps the Node, Machine and BareMetalHost of an Agent on the installed cluster. Any value has this
/// effect.
pub const SKIP_SPOKE_CLEANUP_ANNOTATION: &str = "agent.agent-install.openshift.io/skip-spoke-cleanup";

/// Annotation with the sorted, comma-separated keys of the node labels that an Agent inherits from its InfraEnv.
pub const INHERITED_NODE_LABELS_ANNOTATION: &str = "agent.agent-install.openshift.io/inherited-node-labels";

/// Annotation of an InfraEnv whose images contain the ironic agent. The value is [`LABEL_TRUE`].
pub const ENABLE_IRONIC_AGENT_ANNOTATION: &str = "infraenv.agent-install.openshift.io/enable-ironic-agent";

/// Annotation with the image of the ironic agent, set by the user on an InfraEnv.
pub const IRONIC_AGENT_IMAGE_ANNOTATION: &str =
    "infraenv.agent-install.openshift.io/ironic-agent-image-override";

/// Annotation with the IP families of the ironic agent, set by the user on an InfraEnv: `v4`, `v6` or `v4,v6`.
pub const IP_FAMILY_ANNOTATION: &str = "infraenv.agent-install.openshift.io/ip-family";

/// Annotation with the comma-separated keys of the InfraEnv labels that Agents pass on to their nodes.
pub const PROPAGATE_NODE_LABELS_ANNOTATION: &str =
    "infraenv.agent-install.openshift.io/propagate-node-labels";

/// Annotation with the id of the infra-env in the inventory. An InfraEnv keeps this id when the hub is restored,
/// although its uid changes.
pub const RECORD_ID_ANNOTATION: &str = "infraenv.agent-install.openshift.io/infra-env-id";

/// Annotation that marks an Agent as approved by its InfraEnv. If a user withdraws the approval, the InfraEnv does not
/// approve the Agent again. The value is [`LABEL_TRUE`].
pub const AUTO_APPROVED_ANNOTATION: &str = "agent.agent-install.openshift.io/auto-approved";

/// Finalizer of InfraEnvs.
pub const INFRA_ENV_FINALIZER: &str = "infraenv.agent-install.openshift.io/ai-deprovision";

/// Finalizer of Agents.
pub const AGENT_FINALIZER: &str = "agent.agent-install.openshift.io/ai-deprovision";

/// Finalizer of AgentClassifications. Upstream's name has no path.
pub const AGENT_CLASSIFICATION_FINALIZER: &str = "agentclassification.agent-install.openshift.io";
