//! Finding a master by Sentinels: logins, their errors, and Sentinels that still name an older
//! master.

use std::time::Duration;

use lockstorm_client::{Client, Credentials, ErrorKind, LossCause, ReplicaWait, Sentinels};
use redis::Value;

use crate::deployment::{MASTER, Watched};
use crate::support::{Flow, Proxy, RedisServer, eventually, free_port, soon};

/// The Sentinels and the nodes have different logins.
#[tokio::test]
async fn sentinels_and_nodes_have_logins_of_their_own() {
    let Some(watched) = Watched::start_with_passwords("secret", "other").await else { return };
    let url = watched.url().replace("redis+sentinel://", "redis+sentinel://:secret@");
    let built = watched.sentinels.iter().fold(Sentinels::of(MASTER), |built, sentinel| {
        built.at(format!("redis://:other@127.0.0.1:{}", sentinel.port))
    });
    let built = built.credentials(Credentials::password("secret"));
    for settings in [Client::builder().endpoint(&url), Client::builder().endpoint(built)] {
        let client = settings.connect().await.unwrap();
        client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    }
    for (wrong, told) in [
        (url.replace("sentinel_password=other", "sentinel_password=wrong"), "WRONGPASS"),
        (url.replace("?sentinel_password=other", ""), "NOAUTH"),
        (url.replace(":secret@", ":wrong@"), "WRONGPASS"),
        (url.replace(":secret@", ""), "NOAUTH"),
    ] {
        let error = Client::connect(&wrong).await.unwrap_err();
        assert!(error.is_definite() && error.to_string().contains(told), "{wrong}: {error}");
    }
}

/// The rights that a user of the Sentinels needs. It may lack those for messages, names and the
/// list of the other Sentinels.
#[tokio::test]
async fn a_user_of_sentinels_with_few_rights_follows_a_failover() {
    let needed = "-@all +sentinel|master +sentinel|get-master-addr-by-name";
    let Some(watched) = Watched::start_with_users("clerk", "desk", needed).await else { return };
    let client = watched.client().connect().await.unwrap();
    client.lock("stock").acquire().await.unwrap().release().await.unwrap();
    let old = watched.nodes[0].port();
    watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    watched.replaced(old).await;
    watched.is_followed(&client, "stock", 0).await;

    for sentinel in &watched.sentinels {
        sentinel.command(&["ACL", "SETUSER", "clerk", "-sentinel|master"]).await;
    }
    for (url, told) in [
        (watched.url(), "NOPERM"),
        (watched.url().replace("=clerk", "=default"), "WRONGPASS"),
        (watched.url().replace("=desk", "=chair"), "WRONGPASS"),
        (watched.url().replace("?sentinel_username=clerk&sentinel_password=desk", ""), "NOAUTH"),
    ] {
        let error = Client::connect(&url).await.unwrap_err();
        assert!(error.is_definite() && error.to_string().contains(told), "{url}: {error}");
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_the_sentinels_that_were_asked() {
    let Some(watched) = Watched::start(&[]).await else { return };
    let at = format!("127.0.0.1:{}", watched.sentinels[0].port);
    let error = Client::connect(watched.url().replace(MASTER, "other")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnknownMaster { master, .. } if master == "other"), "{error}");
    assert!(error.to_string().contains(&at), "{error}");

    let (one, two) = (free_port(), free_port());
    let url = format!("redis+sentinel://127.0.0.1:{one},127.0.0.1:{two}/{MASTER}");
    let error = Client::connect(&url).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSentinel { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains(&format!("127.0.0.1:{one}, 127.0.0.1:{two}")) && told.contains(MASTER), "{told}");

    // A server that is not a Sentinel, and a Sentinel whose master has just become a replica.
    let error = Client::connect(format!("redis+sentinel://127.0.0.1:{}/{MASTER}", watched.nodes[0].port()));
    let error = error.await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSentinel { .. }), "{error}");
    for sentinel in &watched.sentinels {
        sentinel.signal("STOP");
    }
    let hurried = watched.client().connect_timeout(Duration::from_secs(2));
    let error = hurried.connect().await.unwrap_err();
    assert!(
        error.to_string().contains("none answers in time") || error.to_string().contains("timed out"),
        "{error}"
    );
    for sentinel in &watched.sentinels {
        sentinel.signal("CONT");
    }
    let replica = watched.nodes[1].port();
    let other = RedisServer::start().unwrap();
    watched.nodes[0].command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).await;
    let hurried = watched.client().connect_timeout(Duration::from_millis(800));
    let error = hurried.connect().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoMaster { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains(&at) && told.contains(&watched.nodes[0].port().to_string()), "{told}");
    assert!(!told.contains(&replica.to_string()), "{told}");
}

/// One of three Sentinels is named; the client finds the others, and can do without the named one.
#[tokio::test]
async fn sentinels_that_were_not_named_are_found() {
    let Some(mut watched) = Watched::start(&[]).await else { return };
    let url = format!("redis+sentinel://127.0.0.1:{}/{MASTER}", watched.sentinels[0].port);
    let client = watched.client_of(&url).connect().await.unwrap();
    // The client asks them from its second look on.
    eventually("all are asked", async || {
        let mut subscribers = 0;
        for sentinel in &watched.sentinels {
            let told = sentinel.command(&["CLIENT", "LIST"]).await;
            let told: String = redis::from_redis_value(told).unwrap();
            subscribers +=
                usize::from(told.lines().any(|line| line.contains(" sub=1 ") && line.contains("resp=3")));
        }
        subscribers == 3
    })
    .await;
    watched.sentinels[0].crash();
    let guard = client.lock("stock").acquire().await.unwrap();
    watched.sentinels[1].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    let old = watched.nodes[0].port();
    eventually("another is master", async || watched.master_by(2).await != old).await;
    let new = watched.master_by(2).await;
    // Until the client learns of the failover, the old master takes its release, and the new one
    // keeps the lock.
    watched.is_followed(&client, "other", 2).await;
    assert_eq!(watched.node(new).command(&["EXISTS", "stock"]).await, Value::Int(1));
    soon("it is released", guard.release()).await.unwrap();
    assert_eq!(watched.node(new).command(&["EXISTS", "stock"]).await, Value::Int(0));
}

/// A Sentinel was down during a failover: alone it cannot lead a client back to the old master,
/// which still reports that it is one.
#[tokio::test]
async fn a_sentinel_that_knows_an_older_master_is_not_believed() {
    let Some(mut watched) = Watched::start(&[]).await else { return };
    let old = watched.nodes[0].port();
    let settings = watched.client().connect_timeout(Duration::from_secs(1)).retry_attempts(2);
    let client = settings.connect().await.unwrap();
    watched.sentinels[2].crash();
    watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    eventually("another is master", async || {
        watched.master_by(0).await != old && watched.master_by(1).await != old
    })
    .await;
    watched.is_followed(&client, "stock", 0).await;
    let new = watched.master_by(0).await;
    // Only the Sentinel that was down can be asked.
    for sentinel in &watched.sentinels[..2] {
        sentinel.signal("STOP");
    }
    // After 8 s alone, the Sentinel that was down would make the new master a replica of the old
    // one: the command is forbidden.
    watched.node(new).command(&["ACL", "SETUSER", "default", "-replicaof", "-slaveof"]).await;
    // On a slow machine it may already be a replica.
    watched.node(old).command(&["REPLICAOF", "NO", "ONE"]).await;
    watched.sentinels[2].restart();
    assert_eq!(watched.master_by(2).await, old);
    let credulous = watched.client().connect().await.unwrap();
    // A name without any earlier grant: a hold that the old master lost in the failover could last
    // for a lease.
    let misled = credulous.lock("orders").acquire().await.unwrap();
    assert_eq!(
        watched.node(old).command(&["EXISTS", "orders"]).await,
        Value::Int(1),
        "what a new client does"
    );
    // The same with a new connection.
    watched.node(new).command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    let error = client.lock("stock").try_acquire().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoMaster { .. }), "{error}");
    assert!(error.to_string().contains("there was"), "{error}");
    drop(misled);
    for sentinel in &watched.sentinels[..2] {
        sentinel.signal("CONT");
    }
    let lock = client.lock("stock");
    let guard = soon("they answer again", async { lock.acquire().await }).await.unwrap();
    assert_eq!(watched.node(new).command(&["EXISTS", "stock"]).await, Value::Int(1));
    guard.release().await.unwrap();
}

/// A client is cut off from all Sentinels while they announce another master, until it has given up
/// its connections to them: it must ask for the missed announcement, because nothing repeats it.
#[tokio::test]
async fn an_announcement_that_was_missed_is_made_up_for() {
    let Some(watched) = Watched::start(&[]).await else { return };
    let mut lines = Vec::new();
    for sentinel in &watched.sentinels {
        lines.push(Proxy::to_port(sentinel.port).await);
    }
    let places: Vec<_> = lines.iter().map(|line| line.url().replace("redis://", "")).collect();
    let client = watched.client_of(&watched.url_by(&places)).connect().await.unwrap();
    client.lock("before").acquire().await.unwrap().release().await.unwrap();
    // Each is connected, and only through the proxy: Sentinels name each other by their own ports.
    let subscribers = async || {
        let mut counts = Vec::new();
        for sentinel in &watched.sentinels {
            let told = sentinel.command(&["CLIENT", "LIST"]).await;
            let told: String = redis::from_redis_value(told).unwrap();
            let ours = |line: &&str| line.contains(" sub=1 ") && line.contains("resp=3");
            counts.push(told.lines().filter(ours).count());
        }
        counts
    };
    eventually("it has subscribed to all", async || subscribers().await == [1, 1, 1]).await;
    let old = watched.nodes[0].port();
    // Without the command to become a replica, it keeps the connections of its clients.
    watched.node(old).command(&["ACL", "SETUSER", "default", "-replicaof", "-slaveof"]).await;

    let before: Vec<_> = lines.iter().map(Proxy::connections).collect();
    for line in &lines {
        line.requests(Flow::Hold);
        line.replies(Flow::Hold);
    }
    watched.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]).await;
    watched.replaced(old).await;
    eventually("it dials them anew", async || {
        lines.iter().zip(&before).all(|(line, before)| line.connections() > *before)
    })
    .await;
    let misled = client.lock("stock").acquire().await.unwrap();
    assert_eq!(watched.node(old).command(&["EXISTS", "stock"]).await, Value::Int(1), "nothing has told it");

    for line in &lines {
        line.requests(Flow::Pass);
        line.replies(Flow::Pass);
    }
    watched.is_followed(&client, "other", 0).await;
    let role = format!("{:?}", watched.node(old).command(&["ROLE"]).await);
    assert!(role.contains("master"), "{role}");
    // The new master never had this hold.
    assert_eq!(soon("the loss is noticed", misled.lost()).await, LossCause::NotHeld);
}

/// The replicas that the Sentinels know count, connected or not.
#[tokio::test]
async fn replicas_that_sentinels_know_are_waited_for() {
    let Some(watched) = Watched::start(&[]).await else { return };
    for (wait, stopped, granted) in [
        (ReplicaWait::All, 0, true),
        (ReplicaWait::Majority, 1, true),
        (ReplicaWait::Synced, 1, true),
        (ReplicaWait::All, 1, false),
        (ReplicaWait::Majority, 2, false),
    ] {
        for replica in &watched.nodes[1..=stopped] {
            replica.signal("STOP");
        }
        let settings = watched.client().replica_wait(wait).replica_timeout(Duration::from_millis(300));
        let client = settings.retry_attempts(0).connect().await.unwrap();
        let got = client.lock("stock").try_acquire().await;
        assert_eq!(got.is_ok(), granted, "{wait:?} with {stopped} stopped: {got:?}");
        if let Err(error) = got {
            assert!(matches!(error.kind(), ErrorKind::NotReplicated { .. }), "{error}");
        } else {
            assert!(got.unwrap().is_some());
        }
        for replica in &watched.nodes[1..=stopped] {
            replica.signal("CONT");
        }
        eventually("it is free", async || {
            watched.nodes[0].command(&["EXISTS", "stock"]).await == Value::Int(0)
        })
        .await;
        eventually("they are in step", async || {
            watched.nodes[0].command(&["WAIT", "2", "100"]).await == Value::Int(2)
        })
        .await;
    }
}
