package metrics

import "github.com/ip-reaper/ip-reaper/reaper/report"

// networks adds the metrics of the networks. A closed network gives no addresses, so it
// has neither a capacity nor free addresses.
func (g gauges) networks(r report.Report) {
	const many = " For a backend with more than 100 networks there is only the sum of each IP family, as network (all)."
	family := func(name, help string) family {
		return g.family(name, help+many, labelBackend, labelNetwork, labelRange)
	}
	capacity := family("network_capacity",
		"Addresses that pods can get of the network, taken or not. Left out if the number is unknown, and for a closed network.")
	allocated := family("network_allocated",
		"Addresses of the network that are allocated after the last run.")
	leaked := family("network_leaked",
		"Addresses of the network that have no owner after the last run, and that nothing protects. Left out if pods could not be listed.")
	free := family("network_free",
		"Addresses that pods can still get of the network after the last run. Left out if the number is unknown, and for a closed network.")

	rows := rowsOf(r.Networks, func(n report.NetworkReport) row { return row{n.Backend, n.Name, n.Range} })
	capacities, frees, judged := make(sums), make(sums), judged(r)
	for i, n := range r.Networks {
		allocated.add(float64(n.Used), rows[i][:]...)
		if judged {
			leaked.add(float64(n.Leaked), rows[i][:]...)
		}
		if n.Closed == "" {
			capacities.add(rows[i], n.Capacity)
			frees.add(rows[i], n.Free)
		}
	}
	capacities.addTo(capacity)
	frees.addTo(free)
}

// leaked adds the bottom line.
func (g gauges) leaked(r report.Report) {
	leaked := g.family("leaked_addresses",
		"Addresses that have no owner, each once, by what becomes of them: due, waiting, held, or released by the last run. Left out if pods could not be listed, or no store.", labelStatus)
	if r.Leaked == nil {
		return
	}
	leaked.add(float64(r.Leaked.Due), "due")
	leaked.add(float64(r.Leaked.Waiting), "waiting")
	leaked.add(float64(r.Leaked.Held), "held")
	leaked.add(float64(r.Leaked.Released), "released")
}
