{{/*
The pod of a Job, which satisfies Pod Security "restricted". Takes the same as
ip-reaper.cronjob.
*/}}
{{- define "ip-reaper.pod" -}}
{{- $values := .root.Values -}}
{{- $name := include "ip-reaper.fullname" .root -}}
restartPolicy: Never
serviceAccountName: "{{ $name }}{{ .account.suffix }}"
automountServiceAccountToken: true
enableServiceLinks: false
# After SIGTERM, a run ends its write, and says what it did in the ledger and metrics. It takes 10
# seconds at most.
terminationGracePeriodSeconds: 60
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" "dnsPolicy" }}
{{- with get $values $field }}
{{ toYaml (dict $field .) }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  {{- if not (include "ip-reaper.openshift" .root) }}
  runAsUser: 65532
  runAsGroup: 65532
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
containers:
- name: ip-reaper
  image: {{ include "ip-reaper.image" .root | quote }}
  imagePullPolicy: {{ $values.image.pullPolicy | quote }}
  args:
  - run
  - --policy=/etc/ip-reaper/policy.yaml
  - --state-namespace=$(NAMESPACE)
  - {{ printf "--timeout=%s" $values.timeout | quote }}
  {{- range .args }}
  - {{ . | quote }}
  {{- end }}
  env:
  {{- include "ip-reaper.env" .root | nindent 2 }}
  {{- with $values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  # The run writes its summary to the termination message. If it cannot, the end of its log is
  # used.
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  {{- if include "ip-reaper.etcdSecret" .root }}
  - name: etcd
    mountPath: /etc/ip-reaper-etcd
    readOnly: true
  {{- end }}
  - name: policy
    mountPath: /etc/ip-reaper
    readOnly: true
  {{- if include "ip-reaper.caVolume" .root }}
  - name: ca
    mountPath: /etc/ip-reaper-ca
    readOnly: true
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
{{- with include "ip-reaper.etcdSecret" .root }}
- name: etcd
  secret:
    secretName: {{ . | quote }}
{{- end }}
- name: policy
  configMap:
    name: ip-reaper-policy
{{- with include "ip-reaper.caVolume" .root }}
{{ . }}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
