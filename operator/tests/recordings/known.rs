//! Lists the known differences between this service and the recordings, and their reasons.

use crate::comparison::KnownDifference;

const REVISION: &str = "the URL changes if and only if the bytes of the image change";
const CLUSTERS: &str = "clusters are not implemented yet";
const GO_ERROR: &str = "the recorded text is an error of Go";

const INITRD: KnownDifference = KnownDifference {
    field: "InfraEnv * status bootArtifacts.initrd",
    recorded: Some("<images>/images/<infra-env>/pxe-initrd?arch=x86_64&version=4.18"),
    played: Some("<images>/images/<infra-env>/<revision>/pxe-initrd?arch=x86_64&version=4.18"),
    reason: REVISION,
};

const ISO: KnownDifference = KnownDifference {
    field: "InfraEnv * status isoDownloadURL",
    recorded: Some("<images>/byid/<infra-env>/4.18/x86_64/full.iso"),
    played: Some("<images>/byid/<infra-env>/4.18/x86_64/<revision>/full.iso"),
    reason: REVISION,
};

const RECORD_ID: KnownDifference = KnownDifference {
    field: "InfraEnv * annotation infraenv.agent-install.openshift.io/infra-env-id",
    recorded: None,
    played: Some("<infra-env>"),
    reason: "with the id, the infra-env is restored if the database is lost",
};

pub(crate) const IMAGES: &[KnownDifference] = &[
    INITRD,
    ISO,
    RECORD_ID,
    KnownDifference {
        field: "InfraEnv * condition ImageCreated",
        recorded: Some(
            "False ImageCreationError: Failed to create image: error parsing ignition: config is not valid, \
             error report: error at line 0 col 0: unexpected end of JSON input\n",
        ),
        played: Some(
            "False ImageCreationError: Failed to create image: error parsing ignition: \
             ignition_config_override: 1:1: error: /: not valid JSON: EOF while parsing an object at line 1 \
             column 1",
        ),
        reason: GO_ERROR,
    },
    KnownDifference {
        field: "InfraEnv one condition ImageCreated",
        recorded: Some(
            "False ImageCreationError: Failed to create image: Failed to validate HTTP Proxy: Proxy URL format \
             is not valid: 'p'",
        ),
        played: Some(
            "False ImageCreationError: Failed to create image: Failed to validate HTTP Proxy: \
             proxy.http_proxy \"p\": does not start with http:// or https://",
        ),
        reason: "the text after the prefix names the field and the cause",
    },
    KnownDifference {
        field: "response patch InfraEnv one {\"cpuArchitecture\":\"arm64\"}",
        recorded: Some("200 "),
        played: Some(
            "422 InfraEnv.agent-install.openshift.io \"one\" is invalid: spec: Invalid value: Attempted to \
             change Spec.CpuArchitecture which is immutable after InfraEnv creation.",
        ),
        reason: "rules of the definitions hold without webhooks",
    },
    KnownDifference {
        field: "InfraEnv * condition ImageCreated",
        recorded: Some(
            "Unknown MissingClusterDeployment: ClusterDeployment is missing: failed to get clusterDeployment \
             with name nowhere in namespace <namespace>: ClusterDeployment.hive.openshift.io \"nowhere\" not found",
        ),
        played: Some(
            "Unknown MissingClusterDeployment: ClusterDeployment is missing: failed to get clusterDeployment \
             with name nowhere in namespace <namespace>: this service does not support ClusterDeployments yet",
        ),
        reason: CLUSTERS,
    },
];

pub(crate) const POOL: &[KnownDifference] = &[
    INITRD,
    ISO,
    RECORD_ID,
    KnownDifference {
        field: "Agent * condition SpecSynced",
        recorded: Some(
            "False BackendError: The Spec could not be synced due to backend error: Requested role (king) is \
             invalid for host <host> from infraEnv <infra-env>",
        ),
        played: Some(
            "False InputError: The Spec could not be synced due to an input error: Requested role (king) is \
             invalid for host <host> from infraEnv <infra-env>",
        ),
        reason: "only a change of the spec helps, so the recorded retries are useless",
    },
    KnownDifference {
        field: "Agent * condition SpecSynced",
        recorded: Some(
            "False BackendError: The Spec could not be synced due to backend error: failed to get \
             clusterDeployment with name nowhere in namespace <namespace>: ClusterDeployment.hive.openshift.io \
             \"nowhere\" not found",
        ),
        played: Some(
            "False InputError: The Spec could not be synced due to an input error: failed to get \
             clusterDeployment with name nowhere in namespace <namespace>: this service does not support \
             ClusterDeployments yet",
        ),
        reason: CLUSTERS,
    },
    KnownDifference {
        field: "Agent * condition SpecSynced",
        recorded: Some(
            "False InputError: The Spec could not be synced due to an input error: Fail to unmarshal installer \
             args for host <host> in infraEnv <infra-env>: invalid character 'x' looking for beginning of value",
        ),
        played: Some(
            "False InputError: The Spec could not be synced due to an input error: Fail to unmarshal installer \
             args for host <host> in infraEnv <infra-env>: expected value at line 1 column 1",
        ),
        reason: GO_ERROR,
    },
    KnownDifference {
        field: "Agent * condition SpecSynced",
        recorded: Some(
            "False InputError: The Spec could not be synced due to an input error: error parsing ignition: \
             config is not valid, error report: error at line 0 col 0: unexpected end of JSON input\n",
        ),
        played: Some(
            "False InputError: The Spec could not be synced due to an input error: error parsing ignition: \
             not valid JSON",
        ),
        reason: GO_ERROR,
    },
    KnownDifference {
        field: "Agent * condition Validated",
        recorded: Some("Unknown ValidationsUnknown: The agent's validations have not yet been calculated"),
        played: None,
        reason: "validations exist before the Agent",
    },
    KnownDifference {
        field: "Agent * annotation agent.agent-install.openshift.io/validations-info",
        recorded: Some(""),
        played: None,
        reason: "validations exist before the Agent",
    },
    KnownDifference {
        field: "AgentClassification broken condition QueryErrors",
        recorded: None,
        played: Some("False NoQueryErrors: No Agents failed to apply the classification"),
        reason: "the recording ends before the last Agent is deleted",
    },
];
