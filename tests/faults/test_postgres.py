"""Eight drivers on one study in PostgreSQL: a hundred of them are killed, and the server goes away twice."""

import time

from tests.storage.crew import Crew


def test_eight_drivers_a_hundred_kills_and_two_restarts(postgres, database, tmp_path, rng, share):
    budget, n_kills = share(2000), share(100)
    begun = time.monotonic()
    crew = Crew(f"{database}#crew", tmp_path, n=8, budget=budget, seconds=0.1)
    try:
        restarts = {n_kills // 3: "fast", 2 * n_kills // 3: "immediate"}
        for kill in range(n_kills):
            crew.wait_for(round(budget * (kill + rng.uniform(0.1, 0.9)) / (n_kills + 1)))
            crew.kill_one(rng)
            if kill in restarts:
                crew.wait_until_ready()
                postgres.stop(restarts[kill])
                time.sleep(rng.uniform(1.0, 15.0))
                postgres.start()
        crew.finish()
    finally:
        crew.dismiss()
    found = crew.audit()
    print(found, f"in {time.monotonic() - begun:.0f} s")
    assert (found.pop("trials"), found.pop("killed")) == (budget, n_kills)
    assert found.pop("died") <= n_kills
    assert not any(found.values()), found
