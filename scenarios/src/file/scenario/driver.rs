//! The drivers of clients: the layer below a lock, which sends its commands.

use super::{Algorithm, Client, Scenario, error::Mistake, places::Places};

/// The most times that a driver sends a command again.
const RETRIES_MAX: u32 = 1_000;

/// Checks that only a client of models has a driver that sends commands again, and that the number
/// of its retries is limited.
pub(super) fn check(
    scenario: &Scenario,
    name: &str,
    client: &Client,
    places: &Places<'_, '_>,
) -> Result<(), Mistake> {
    let Some(retries) = client.retries else { return Ok(()) };
    let place = places.of_value(&["client", name, "retries"]);
    if retries > RETRIES_MAX {
        let message = format!("{retries} retries are too many: at most {RETRIES_MAX} can be");
        return Err(Mistake::at(place, message));
    }
    let mut locks = scenario.lock.values();
    if locks.any(|lock| lock.subject.algorithm == Algorithm::Client) {
        let message = "the production client ends a connection on the server before it sends a request again: only the driver of a \
                       model has retries, such as with lock.subject = \"token-lock\"";
        return Err(Mistake::at(place, message));
    }
    Ok(())
}
