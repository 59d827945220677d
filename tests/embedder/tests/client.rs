//! The same client code, in its own process and over TCP.

use assisted::client::ApiClient;
use embedder::provisioning::{open_inventory, use_client};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn client_sees_the_same_in_process_and_over_tcp() -> Outcome {
    let directory = tempfile::tempdir()?;
    let inventory = open_inventory(directory.path()).await?;
    let in_process = use_client(&ApiClient::over(None, inventory.router())?).await?;
    assert_eq!(in_process[..3], ["rack-1", "0 hosts", "Err(NotFound)"].map(str::to_owned));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = inventory.router();
    tokio::spawn(async move { axum::serve(listener, router).await });
    assert_eq!(use_client(&ApiClient::new(&url)?).await?, in_process);
    inventory.close().await;
    Ok(())
}
