//! The page's files over HTTP, without a browser.

use reqwest::Method;

use crate::run_test;
use crate::service::PageService;
use crate::support::Scratch;

/// Returns the names of all files of the page, collected from their references.
async fn page_file_names(service: &PageService) -> Vec<String> {
    let mut paths = vec!["/".to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        let text = service.get(&path).await.text().await.unwrap();
        for piece in text.split('"').filter(|piece| piece.starts_with("page/") || piece.starts_with("./")) {
            let path = format!("/{}", piece.replace("./", "page/"));
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths
}

#[test]
fn page_files_have_type_and_security_headers() {
    run_test(async {
        let service = PageService::start().await;
        let paths = page_file_names(&service).await;
        assert_eq!(paths.len(), 22, "{paths:?}");
        for path in paths {
            let answer = service.get(&path).await;
            assert_eq!(answer.status(), 200, "{path}");
            let headers = answer.headers().clone();
            let of = |name: &str| headers[name].to_str().unwrap();
            let media_type = match path.rsplit('.').next().unwrap() {
                "css" => "text/css; charset=utf-8",
                "js" => "text/javascript; charset=utf-8",
                "svg" => "image/svg+xml",
                _ => "text/html; charset=utf-8",
            };
            assert_eq!(of("content-type"), media_type, "{path}");
            assert_eq!(of("x-content-type-options"), "nosniff");
            let policy = of("content-security-policy");
            assert!(policy.starts_with("default-src 'self'; ") && !policy.contains("unsafe"), "{policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            let again = service.client.get(service.url(&path)).header("if-none-match", of("etag"));
            let again = again.send().await.unwrap();
            assert_eq!(
                (again.status().as_u16(), again.headers()["etag"].to_str().unwrap()),
                (304, of("etag"))
            );
            let other = service.client.get(service.url(&path)).header("if-none-match", "\"another\"");
            assert_eq!(other.send().await.unwrap().status(), 200);
            let head = service.client.head(service.url(&path)).send().await.unwrap();
            assert_eq!(head.headers()["content-length"], headers["content-length"], "{path}");
        }
        let wrong = service.client.request(Method::DELETE, service.url("/")).send().await.unwrap();
        assert_eq!((wrong.status().as_u16(), wrong.headers()["allow"].to_str().unwrap()), (405, "GET,HEAD"));
        assert_eq!(service.get("/page/nothing.js").await.status(), 404);
    });
}

/// With an external inventory, the page would have nothing to show.
#[test]
fn server_with_external_inventory_has_no_page() {
    run_test(async {
        let options = ["--listen", "127.0.0.1:0", "--inventory-url", "http://127.0.0.1:9"];
        let service = PageService::spawn(Scratch::new(), "http://127.0.0.1:9/live.iso", &options);
        for path in ["/", "/page/page.js", "/docs", "/openapi.json"] {
            assert_eq!(service.get(path).await.status(), 404, "{path}");
        }
        assert_eq!(service.get("/live").await.status(), 200);
    });
}
