//! Parts of the OpenAPI document that all routes for image files share: header parameters and responses.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

/// The media types of images, of other files, and of digests and scripts.
const FILE_TYPES: [&str; 3] = ["application/x-iso9660-image", "application/octet-stream", "text/plain"];

/// Names and descriptions of the headers that select ranges or make a request conditional.
const HEADERS: [(&str, &str); 6] = [
    ("Range", "Ranges of the file, such as `bytes=0-1023`. At most 64"),
    ("If-Range", "Entity tag or date of the file. If it has changed, `Range` is ignored"),
    ("If-None-Match", "Entity tags. If one of them matches the file, the response is 304"),
    ("If-Modified-Since", "Date. If the file has not changed since then, the response is 304"),
    ("If-Match", "Entity tags. If none of them matches the file, the response is 412"),
    ("If-Unmodified-Since", "Date. If the file has changed since then, the response is 412"),
];

/// Statuses and descriptions of error responses.
const REFUSALS: [(&str, &str); 9] = [
    ("400", "A value in the request is invalid."),
    ("401", "The request has no valid token for the infra-env."),
    ("404", "The infra-env, the base image or the file does not exist."),
    ("409", "The state of the infra-env does not allow the operation."),
    (
        "410",
        "The revision in the URL is no longer available; the message contains the URL of the current image.",
    ),
    ("412", "The file does not match `If-Match` or `If-Unmodified-Since`."),
    ("416", "The requested range is outside the file."),
    ("500", "The service failed; its log has the cause."),
    ("503", "The base image or the inventory is unavailable; retry after the time in `Retry-After`."),
];

/// Names and descriptions of the path parameters that select an image by version.
const VERSION_AND_FILE: [(&str, &str); 3] = [
    ("version", "Version of OpenShift or of the base image, such as `4.18`"),
    ("architecture", "CPU architecture, such as `x86_64`"),
    (
        "file",
        "`full.iso`, `minimal.iso` or `disconnected.iso`, or one of these with `.sha256` for its digest",
    ),
];

/// The header parameters of a request for a file.
pub(super) struct FileHeaders;

impl IntoParams for FileHeaders {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        HEADERS.map(|header| parameter(ParameterIn::Header, Required::False, header)).into()
    }
}

/// The path parameter that selects a revision of an image.
const REVISION: (&str, &str) = (
    "revision",
    "Revision of the image, as in `download_url`: 16 hexadecimal digits. The response has the bytes of that revision only",
);

/// Parameters for a revision of an image whose version is in the path.
pub(super) struct FileOfRevision;

impl IntoParams for FileOfRevision {
    fn into_params(of: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let revision = parameter(ParameterIn::Path, Required::True, REVISION);
        FileOfVersion::into_params(of).into_iter().chain([revision]).collect()
    }
}

/// Parameters for a revision of a file whose version is in the query.
pub(super) struct RevisionWithVersionInQuery;

impl IntoParams for RevisionWithVersionInQuery {
    fn into_params(of: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let revision = parameter(ParameterIn::Path, Required::True, REVISION);
        VersionInQuery::into_params(of).into_iter().chain([revision]).collect()
    }
}

/// Parameters for an image whose version is in the path.
pub(super) struct FileOfVersion;

impl IntoParams for FileOfVersion {
    fn into_params(of: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let path = VERSION_AND_FILE.map(|segment| parameter(ParameterIn::Path, Required::True, segment));
        path.into_iter().chain(FileHeaders::into_params(of)).collect()
    }
}

/// Parameters for a file whose version is in the query.
pub(super) struct VersionInQuery;

impl IntoParams for VersionInQuery {
    fn into_params(of: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let [version, ..] = VERSION_AND_FILE;
        let architecture = ("arch", "CPU architecture. Default: `x86_64`");
        let query = [
            parameter(ParameterIn::Query, Required::True, version),
            parameter(ParameterIn::Query, Required::False, architecture),
        ];
        query.into_iter().chain(FileHeaders::into_params(of)).collect()
    }
}

fn parameter(place: ParameterIn, required: Required, (name, description): (&str, &str)) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(required)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// All responses to a request for a file.
pub(super) struct FileResponses;

impl IntoResponses for FileResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(|status| status != "410")
    }
}

/// All responses to a request for a revision of a file.
pub(super) struct RevisionResponses;

impl IntoResponses for RevisionResponses {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(|_| true)
    }
}

/// The error responses to a request for an infra-env, if the request is not for a file.
pub(super) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        references(|status| !["200", "206", "304", "410", "412", "416"].contains(&status))
    }
}

/// Returns references to the shared responses whose status satisfies `is_used`.
fn references(is_used: impl Fn(&str) -> bool) -> BTreeMap<String, RefOr<Response>> {
    let used = all_responses().into_iter().filter(|(status, _)| is_used(status));
    used.map(|(status, _)| (status.to_owned(), Ref::from_response_name(component_name(status)).into()))
        .collect()
}

/// Adds the shared responses to the components of an OpenAPI document.
pub(super) fn add_responses(document: &mut OpenApi) {
    let components = document.components.get_or_insert_with(Components::default);
    let all = all_responses().into_iter();
    components.responses.extend(all.map(|(status, response)| (component_name(status), response.into())));
}

fn component_name(status: &str) -> String {
    format!("image_{status}")
}

fn all_responses() -> Vec<(&'static str, Response)> {
    let [image, bytes, text] = FILE_TYPES;
    let unchanged = ResponseBuilder::new().description("The client has the current file.").build();
    let files = [
        ("200", file("The requested file.", &FILE_TYPES)),
        ("206", file("The requested ranges of the file.", &[image, bytes, text, "multipart/byteranges"])),
        ("304", unchanged),
    ];
    files.into_iter().chain(REFUSALS.map(|(status, description)| (status, refusal(description)))).collect()
}

fn file(description: &str, media_types: &[&str]) -> Response {
    let bytes = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
    let content = ContentBuilder::new().schema(Some(bytes)).build();
    let response = ResponseBuilder::new().description(description);
    media_types
        .iter()
        .fold(response, |response, media_type| response.content(*media_type, content.clone()))
        .build()
}

fn refusal(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("refusal"))).build();
    ResponseBuilder::new().description(description).content("application/json", content).build()
}
