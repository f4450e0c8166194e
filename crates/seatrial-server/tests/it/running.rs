//! Models that fail: only the request that is to blame hears of it, and the server goes on.

use std::thread;

use seatrial_server::Ask;
use seatrial_types::{Error, Result, Tensor};

use crate::stand_in::Server;

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

/// Refuses any batch with a 13 in it, panics at 66, gives too few rows at 77.
fn moody(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let rows = values(&inputs[0]);
    assert!(!rows.contains(&66.0), "a model that panics");
    if rows.contains(&13.0) {
        return Err(Error::invalid("13 is out of the table"));
    }
    let mut output = inputs[0].clone();
    if rows.contains(&77.0) {
        output.data = output.data.slice(4..);
    }
    Ok(vec![output])
}

#[test]
fn a_bad_row_fails_alone_and_a_panic_does_no_harm() {
    let server = Server::ready(moody);
    let ask = |value: f32| {
        let (status, text) = server.infer(value);
        assert!(
            status != 200
                || text.contains(&format!("\"data\":[{value:?}]"))
                || text.contains(&format!("[{value}]")),
            "{text}"
        );
        status
    };
    for _ in 0..5 {
        let statuses = thread::scope(|scope| {
            let asked: Vec<_> =
                [1.0, 2.0, 13.0, 3.0, 66.0, 4.0, 5.0, 6.0].map(|v| scope.spawn(move || ask(v))).into();
            asked.into_iter().map(|a| a.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(statuses, [200, 200, 400, 200, 500, 200, 200, 200]);
    }
    assert_eq!(ask(77.0), 500, "an output that does not fit its shape");
    assert_eq!(ask(1.0), 200);
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains(r#"seatrial_server_requests_total{model="m",code="500"} 6"#), "{metrics}");
    server.ask(Ask::Terminate);
    assert_eq!(server.end(), 0);
}
