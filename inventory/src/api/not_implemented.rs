//! Operations of the Assisted Installer API that this service does not implement. These operations return 501, so that
//! the cause is not sought in the path or body of the request.

use axum::http::StatusCode;
use axum::routing::{MethodFilter, on};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation as Description, OperationBuilder, ParameterBuilder, ParameterIn, PathsBuilder,
};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{ContentBuilder, PathItem, Ref, Required, Response, ResponseBuilder};

use crate::api::ApiError;
use crate::api::auth::{
    AcceptedTokens, Agent, Caller, Logs, Operation, Operations, Target, User, UserOrAgent, WholeService,
};
use crate::id::{ClusterId, HostKey};

/// The tag of these operations in the OpenAPI document.
const TAG: &str = "not implemented";
/// The extension that marks operations that always fail with 501, even if they check the request first.
const EXTENSION: &str = "x-not-implemented";

/// The callers of an operation.
#[derive(Clone, Copy, Debug)]
enum Callers {
    Users,
    Machines,
    Both,
    Downloaders,
}

use Callers::{Both, Downloaders, Machines, Users};
use HttpMethod::{Delete, Get, Patch, Post, Put};

/// Method, path, id and callers of each operation. An operation implemented elsewhere is skipped.
const OPERATIONS: &[(HttpMethod, &str, &str, Callers)] = &[
    (Put, "/v2/clusters/{cluster_id}/progress", "v2UpdateClusterFinalizingProgress", Machines),
    (Get, "/v2/clusters/{cluster_id}/supported-platforms", "GetClusterSupportedPlatforms", Users),
    (
        Get,
        "/v2/clusters/{cluster_id}/downloads/credentials-presigned",
        "V2GetPresignedForClusterCredentials",
        Users,
    ),
    (Get, "/v2/clusters/{cluster_id}/credentials", "V2GetCredentials", Users),
    (Get, "/v2/clusters/{cluster_id}/downloads/files", "V2DownloadClusterFiles", Both),
    (Get, "/v2/clusters/{cluster_id}/downloads/credentials", "V2DownloadClusterCredentials", Both),
    (Get, "/v2/clusters/{cluster_id}/downloads/files-presigned", "V2GetPresignedForClusterFiles", Users),
    (Get, "/v2/clusters/{cluster_id}/install-config", "v2GetClusterInstallConfig", Users),
    (Patch, "/v2/clusters/{cluster_id}/install-config", "v2UpdateClusterInstallConfig", Users),
    (Get, "/v2/domains", "V2ListManagedDomains", Users),
    (Post, "/v2/clusters/{cluster_id}/actions/install", "v2InstallCluster", Users),
    (Post, "/v2/clusters/{cluster_id}/actions/cancel", "V2CancelInstallation", Users),
    (Post, "/v2/clusters/{cluster_id}/actions/reset", "v2ResetCluster", Users),
    (Post, "/v2/clusters/{cluster_id}/actions/allow-add-workers", "TransformClusterToDay2", Users),
    (Post, "/v2/clusters/{cluster_id}/actions/allow-add-hosts", "TransformClusterToAddingHosts", Users),
    (Get, "/v2/clusters/{cluster_id}/preflight-requirements", "v2GetPreflightRequirements", Users),
    (Get, "/v2/supported-operators/{operator_name}", "V2ListOperatorProperties", Users),
    (Get, "/v2/supported-operators", "V2ListSupportedOperators", Users),
    (Get, "/v2/operators/bundles", "V2ListBundles", Users),
    (Get, "/v2/operators/bundles/{id}", "V2GetBundle", Users),
    (Post, "/v2/clusters/{cluster_id}/uploads/ingress-cert", "v2UploadClusterIngressCert", Machines),
    (Post, "/v2/clusters/{cluster_id}/actions/complete-installation", "v2CompleteInstallation", Machines),
    (Put, "/v2/clusters/{cluster_id}/logs-progress", "v2UpdateClusterLogsProgress", Machines),
    (Get, "/v2/clusters/{cluster_id}/manifests", "V2ListClusterManifests", Users),
    (Post, "/v2/clusters/{cluster_id}/manifests", "V2CreateClusterManifest", Users),
    (Patch, "/v2/clusters/{cluster_id}/manifests", "V2UpdateClusterManifest", Users),
    (Delete, "/v2/clusters/{cluster_id}/manifests", "V2DeleteClusterManifest", Users),
    (Get, "/v2/clusters/{cluster_id}/manifests/files", "v2DownloadClusterManifest", Users),
    (Get, "/v2/release-sources", "v2ListReleaseSources", Users),
    (Get, "/v2/clusters/{cluster_id}/logs", "V2DownloadClusterLogs", Downloaders),
    (Get, "/v2/clusters/{cluster_id}/monitored-operators", "V2ListOfClusterOperators", Machines),
    (Put, "/v2/clusters/{cluster_id}/monitored-operators", "v2ReportMonitoredOperatorStatus", Machines),
    (Get, "/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition", "v2DownloadHostIgnition", Both),
    (Get, "/v2/support-levels/features", "GetSupportedFeatures", Users),
    (Get, "/v2/support-levels/features/detailed", "GetDetailedSupportedFeatures", Users),
    (Get, "/v2/clusters/{cluster_id}/ignored-validations", "v2GetIgnoredValidations", Users),
    (Put, "/v2/clusters/{cluster_id}/ignored-validations", "v2SetIgnoredValidations", Users),
    (Get, "/v2/clusters/{cluster_id}/ui-settings", "V2GetClusterUISettings", Users),
    (Put, "/v2/clusters/{cluster_id}/ui-settings", "V2UpdateClusterUISettings", Users),
];

/// Adds the operations that `operations` lacks.
pub(super) fn add_to(operations: Operations) -> Operations {
    OPERATIONS.iter().fold(operations, |operations, (method, path, id, whose)| {
        let document = operations.router.get_openapi();
        if document.paths.get_path_operation(path, method.clone()).is_some() {
            return operations;
        }
        operations.with(match whose {
            Users => operation_of_path::<User>(method, path, id),
            Machines => operation_of_path::<Agent>(method, path, id),
            Both => operation_of_path::<UserOrAgent>(method, path, id),
            Downloaders => operation_of_path::<Logs>(method, path, id),
        })
    })
}

/// Returns an operation whose target is the resource in its path.
fn operation_of_path<A: AcceptedTokens>(method: &HttpMethod, path: &str, id: &'static str) -> Operation {
    if path.contains("{host_id}") {
        not_implemented_operation::<A, HostKey>(method, path, id)
    } else if path.contains("{cluster_id}") {
        not_implemented_operation::<A, ClusterId>(method, path, id)
    } else {
        not_implemented_operation::<A, WholeService>(method, path, id)
    }
}

fn not_implemented_operation<A: AcceptedTokens, T: Target>(
    method: &HttpMethod,
    path: &str,
    id: &'static str,
) -> Operation {
    let filter = match method {
        Delete => MethodFilter::DELETE,
        Patch => MethodFilter::PATCH,
        Post => MethodFilter::POST,
        Put => MethodFilter::PUT,
        _ => MethodFilter::GET,
    };
    let handler = async move |_: Caller<A, T>| not_implemented_error(id);
    let item = PathItem::new(method.clone(), describe(path, id));
    let paths = PathsBuilder::new().path(path, item).build();
    Operation::new((Vec::new(), paths, on(filter, handler)), handler)
}

fn not_implemented_error(operation: &str) -> ApiError {
    let reason = format!("{operation} is not implemented by this service yet");
    ApiError::new(StatusCode::NOT_IMPLEMENTED, reason)
}

/// Returns the description for the OpenAPI document.
fn describe(path: &str, operation: &str) -> Description {
    let refused = |description: &str, schema: &str| -> Response {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
        ResponseBuilder::new().description(description).content("application/json", content).build()
    };
    let parameters = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| {
        let format = name.ends_with("_id").then_some(SchemaFormat::KnownFormat(KnownFormat::Uuid));
        let schema = ObjectBuilder::new().schema_type(Type::String).format(format);
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(schema))
            .build()
    };
    OperationBuilder::new()
        .tag(TAG)
        .operation_id(Some(operation))
        .summary(Some(format!("Not implemented: {operation}")))
        .description(Some("The response to every request that has access is 501."))
        .extensions(Some(ExtensionsBuilder::new().add(EXTENSION, true).build()))
        .parameters(Some(parameters.map(parameter).collect::<Vec<_>>()))
        .response("401", refused("The request has no valid token.", "infra_error"))
        .response("403", refused("The token does not allow the operation.", "refusal"))
        .response("404", refused("The token does not grant access to the resource.", "error"))
        .response("501", refused("This service does not implement the operation.", "error"))
        .build()
}
