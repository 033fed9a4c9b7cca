{{/*
The policy of all Jobs. Those that make dry runs have a flag for it.
*/}}
{{- define "ip-reaper.policy" -}}
{{- $policy := dict "apiVersion" "ip-reaper/v1alpha1" "kind" "ReapPolicy" "dryRun" false -}}
{{- range $field, $value := .Values.policy -}}
  {{- $_ := set $policy $field $value -}}
{{- end -}}
{{- $backends := dict -}}
{{- range $name, $backend := .Values.backends -}}
  {{- $settings := dict -}}
  {{- range $field := list "enabled" "resources" "unknownFields" -}}
    {{- if hasKey $backend $field -}}
      {{- $_ := set $settings $field (get $backend $field) -}}
    {{- end -}}
  {{- end -}}
  {{- /* The variables of Calico's own programs select etcd. */ -}}
  {{- if eq ($backend.datastore | default "") "kubernetes" -}}
    {{- $_ := set $settings "datastore" "kubernetes" -}}
  {{- end -}}
  {{- if not (has (toJson $settings) (list `{"enabled":"auto"}` `{"enabled":"auto","unknownFields":"hold"}` `{"resources":[]}`)) -}}
    {{- $_ := set $backends $name $settings -}}
  {{- end -}}
{{- end -}}
{{- with $backends -}}
  {{- $_ := set $policy "backends" . -}}
{{- end -}}
{{- toYaml $policy -}}
{{- end }}
