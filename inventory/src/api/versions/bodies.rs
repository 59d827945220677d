//! The type of request bodies for base images, with its name in error messages.

use assisted::version::OsImageParams;

use crate::api::request_bodies;

request_bodies! {
    OsImageParams: "newOsImageParams";
}
