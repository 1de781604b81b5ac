//! The values that a seed determines on a server behind real sockets, and those that it does not.

use lockstorm_sim::TestServer;

use crate::peer::Peer;

#[test]
fn a_seed_decides_what_is_drawn_and_no_id() {
    let servers = [(); 2].map(|()| TestServer::builder().seed(7).start_blocking().expect("a free port"));
    let told = servers.each_ref().map(|server| {
        let mut peer = Peer::connect(server);
        peer.asks("SADD members a b c d e f g h", ":8\r\n");
        let drawn: Vec<String> = (0..16).map(|_| peer.text("SRANDMEMBER members")).collect();
        // With the same ID, each would let the other continue its own, different history.
        (drawn, peer.info("replication", "master_replid"), peer.info("server", "run_id"))
    });
    let [(drawn, replid, run), (other_drawn, other_replid, other_run)] = told;
    assert_eq!(drawn, other_drawn);
    assert_ne!(replid, other_replid);
    assert_ne!(run, other_run);
}
