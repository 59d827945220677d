//! Servers that send slowly, send nothing, or send informational responses without end. Other images must not wait for
//! them.

use std::time::Duration;

use kindling::images::library::{AddedImageServers, BaseImageState, Library, LibrarySettings};
use kindling::inventory::catalogue::OsImage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::server::{ImageFileServer, ImageReply, ReplyGate};
use crate::support::{
    LibraryFolder, first_image, os_image, unavailability_reason, wait_for_state, within_time_limit,
};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

fn image(version: &str, url: &str) -> OsImage {
    OsImage { version: version.to_owned(), ..os_image(url) }
}

fn settings(place: &LibraryFolder) -> LibrarySettings {
    let mut settings = place.settings();
    settings.parallel_downloads = 2;
    settings.added_from = AddedImageServers::Listed([String::from("127.0.0.1")].into());
    settings.added_turn = NEVER;
    settings
}

/// Starts three servers and returns their images: the images of two slow servers, and an image of a fast server, which
/// must wait for a slot.
async fn two_slow_images() -> (Vec<ImageFileServer>, Vec<OsImage>) {
    let slow = |request: &_, _| ImageReply::from_file(request, first_image(), "\"one\"").slow_after(1000);
    let servers = vec![
        ImageFileServer::new(slow).await,
        ImageFileServer::new(slow).await,
        ImageFileServer::with_file(first_image()).await,
    ];
    let images = servers.iter().enumerate();
    let images = images.map(|(number, server)| image(&number.to_string(), &server.url("a.iso"))).collect();
    (servers, images)
}

/// Waits for a range request that starts after the start of the second request, and returns the start offsets of all
/// requests. A server without CPU time may send nothing during one request.
async fn wait_for_progress(library: &Library, server: &ImageFileServer) -> Vec<Option<usize>> {
    let mut changes = library.state_changes();
    within_time_limit(async {
        loop {
            let starts = server.download_offsets();
            if starts.last() > starts.get(1) {
                return starts;
            }
            changes.changed().await.unwrap();
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_downloads_release_their_slots() {
    for are_added in [true, false] {
        let (servers, images) = two_slow_images().await;
        let place = LibraryFolder::new();
        let mut settings = settings(&place);
        settings.stall = Duration::from_millis(200);
        settings.min_rate = 1 << 20;
        let (configured, added) = if are_added { (vec![], images.clone()) } else { (images.clone(), vec![]) };
        let library = Library::open_with_added(settings, configured, added).unwrap();
        for server in &servers[..2] {
            server.wait_for_requests(1).await;
        }
        within_time_limit(library.wait_ready(&images[2])).await.unwrap();
        for slow in &images[..2] {
            let is_reported = |state: &BaseImageState| match state {
                BaseImageState::Failed { reason, .. } => reason.contains("bytes in 200ms, at least 209715 "),
                _ => false,
            };
            wait_for_state(&library, slow, is_reported).await;
        }
        // Each further request continues where the previous one ended.
        let starts = wait_for_progress(&library, &servers[0]).await;
        assert!(starts[0].is_none() && starts[1] >= Some(1000), "{starts:?}");
        assert!(starts[1..].windows(2).all(|pair| pair[0] <= pair[1]), "{starts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_image_starts_when_the_turn_of_another_ends() {
    let gate = ReplyGate::new();
    let reply_gate = gate.clone();
    let silent = ImageFileServer::new(move |request, _| {
        ImageReply::from_file(request, first_image(), "\"one\"").wait_after(1000, &reply_gate)
    })
    .await;
    let good = ImageFileServer::with_file(first_image()).await;
    let place = LibraryFolder::new();
    let mut settings = settings(&place);
    (settings.stall, settings.added_turn) = (NEVER, Duration::from_millis(1));
    let images =
        [image("1", &silent.url("1.iso")), image("2", &silent.url("2.iso")), image("3", &good.url("3.iso"))];
    let library = Library::open(settings, []).unwrap();
    library.set_added(images[..2].to_vec());
    silent.wait_for_requests(2).await;
    library.set_added(images.clone());
    within_time_limit(library.wait_ready(&images[2])).await.unwrap();
    gate.open();
    for image in &images[..2] {
        within_time_limit(library.wait_ready(image)).await.unwrap();
    }
    assert_eq!(silent.download_offsets(), [None, None], "the slow downloads continued");
}

/// Added images have separate slots.
#[tokio::test(flavor = "multi_thread")]
async fn added_images_do_not_delay_configured_ones() {
    let never = ReplyGate::new();
    let silent =
        ImageFileServer::new(move |_, _| ImageReply::new(200, first_image()).wait_after(1000, &never)).await;
    let good = ImageFileServer::with_file(first_image()).await;
    let place = LibraryFolder::new();
    let mut settings = settings(&place);
    settings.stall = NEVER;
    let added: Vec<_> = (1..9).map(|number| image(&format!("9{number}"), &silent.url("a.iso"))).collect();
    let configured: Vec<_> = (1..5).map(|number| image(&format!("{number}"), &good.url("a.iso"))).collect();
    let library = Library::open(settings, []).unwrap();
    library.set_added(added.clone());
    silent.wait_for_requests(2).await;
    drop(library);
    let mut settings = self::settings(&place);
    settings.stall = NEVER;
    let library = Library::open_with_added(settings, configured.clone(), added).unwrap();
    for image in &configured {
        within_time_limit(library.wait_ready(image)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_informational_responses_time_out() {
    for response in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a.iso", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.read_u8().await.unwrap();
            // Ends when the client closes the connection.
            while socket.write_all(response.as_bytes()).await.is_ok() {}
        });
        let place = LibraryFolder::new();
        let mut settings = place.patient_settings();
        settings.stall = Duration::from_millis(200);
        let os_image = os_image(&url);
        let library = Library::open(settings, [os_image.clone()]).unwrap();
        let reason = unavailability_reason(within_time_limit(library.base(&os_image)).await);
        assert!(reason.contains("timed out"), "{reason}");
        within_time_limit(server).await.unwrap();
    }
}
