//! Bodies of requests about base images.

use crate::api::request_bodies;
use crate::os_image::OsImageParams;

request_bodies! {
    OsImageParams: "newOsImageParams";
}
