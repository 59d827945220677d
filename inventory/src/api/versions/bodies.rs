//! Request bodies for base images.

use assisted::version::OsImageParams;

use crate::api::request_bodies;

request_bodies! {
    OsImageParams: "newOsImageParams";
}
