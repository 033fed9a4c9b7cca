package admission_test

// there are the objects that exist, beside the block.
var there = []struct{ kind, json string }{
	{"pool", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"pool","labels":{"a":"b"}},
		"spec":{"range":"10.0.0.0/24","allocations":{
		"1":{"id":"c1","podref":"shop/one","ifname":"net1"},"2":{"id":"c2","podref":"shop/two","ifname":"net1"}}}}`},
	{"pool", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"other"},
		"spec":{"range":"10.9.0.0/16","allocations":{}}}`},
	{"reservation", reservation("10.0.0.1", `{"podref":"shop/one","containerid":"c1","ifname":"net1"}`, ``)},
	{"reservation", reservation("10.0.0.2", `{"podref":"_ip-reaper/_released","containerid":"c2","ifname":"net1"}`,
		`"a":"b","ip-reaper/spec":"{\"containerid\":\"c2\",\"ifname\":\"net1\",\"podref\":\"shop/two\"}"`)},
	{"reservation", reservation("10.0.0.4", `{"podref":"_ip-reaper/_released","containerid":"c4"}`, ``)},
	{"handle", `{"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMHandle","metadata":{"name":"h1"},
		"spec":{"handleID":"h1","deleted":false,"block":{"10.1.0.0/26":2,"10.2.0.0/26":1}}}`},
	{"reserved", `{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP","metadata":{"namespace":"kube-system","name":"kept"},"spec":{"pod":"shop/one"}}`},
	{"configmap", configMap("ip-reaper", "ip-reaper-ledger")},
	{"configmap", configMap("ip-reaper", "ip-reaper-policy")},
	{"configmap", configMap("ip-reaper", "ip-reaper-journal-1-1-1")},
	{"configmap", configMap("kube-system", "ip-reaper-ledger")},
	{"configmap", configMap("kube-system", "ip-reaper-journal-1-1-1")},
	{"lease", lease("ip-reaper", "ip-reaper")},
	{"lease", lease("ip-reaper", "other")},
	{"lease", lease("kube-system", "ip-reaper")},
	{"account", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"namespace":"kube-system","name":"admin"}}`},
	{"node", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}}`},
	{"pod", pod("one")},
}

func reservation(name, spec, annotations string) string {
	return `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{"namespace":"kube-system","name":"` +
		name + `","annotations":{` + annotations + `}},"spec":` + spec + `}`
}

// newHandle is a handle whose ID has no capitals.
func newHandle(id, counts string) string {
	return `{"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMHandle","metadata":{"name":"` + id + `"},
		"spec":{"handleID":"` + id + `","deleted":false,"block":{` + counts + `}}}`
}

func configMap(namespace, name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"` + namespace + `","name":"` + name + `"}}`
}

func lease(namespace, name string) string {
	return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"` + namespace + `","name":"` + name + `"}}`
}

func pod(name string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"kube-system","name":"` + name + `"},"spec":{"containers":[{"name":"a","image":"a"}]}}`
}
