{{- /* Cut so that the longest name made of it, that of a revision of the StatefulSet, is a label's value. */}}
{{- define "gozkd.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) }}{{ $name = printf "%s-%s" $name .Chart.Name }}{{ end -}}
{{- .Values.fullnameOverride | default $name | trunc 45 | trimSuffix "-" -}}
{{- end }}

{{- define "gozkd.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* What the pods of servers and of the verification have in common. */}}
{{- define "gozkd.pod" -}}
automountServiceAccountToken: {{ .Values.scaling.enabled }}
enableServiceLinks: false # they would look like settings of ZooKeeper's images
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.serviceAccount.name | default (ternary (include "gozkd.name" .) "" (or .Values.serviceAccount.create .Values.scaling.enabled)) }}
serviceAccountName: {{ . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "gozkd.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gozkd.labels" -}}
{{ include "gozkd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Labels of the pods that verify the archive: no service or budget of the servers may select these. */}}
{{- define "gozkd.verifyLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-verify
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The URL of the archive; empty: there is none. */}}
{{- define "gozkd.archive" -}}
{{ .Values.archive.url | default (get .Values.config "gozkd.archive.url") }}
{{- end }}

{{- /* GOMEMLIMIT for a container with this memory, as serve computes it from the memory of a container. */}}
{{- define "gozkd.goMemory" -}}
{{- if not (regexMatch "^[1-9][0-9]*[MG]i$" .) }}{{ fail (printf "memory is %q; allowed: a whole number of Mi or Gi, such as 512Mi" .) }}{{ end -}}
{{- $mib := regexFind "^[0-9]+" . | int -}}
{{- if hasSuffix "Gi" . }}{{ $mib = mul $mib 1024 }}{{ end -}}
{{- if lt (int $mib) 48 }}{{ fail (printf "memory is %q; a server needs at least 48Mi" .) }}{{ end -}}
{{- sub $mib (max (div $mib 10) 12) }}MiB
{{- end }}

{{- /* The server line of a server: its addresses for the others and for clients. */}}
{{- define "gozkd.line" -}}
{{- $name := include "gozkd.name" .root -}}
{{ $name }}-{{ .id }}.{{ $name }}-headless.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}:2888:3888{{ if not .root.Values.tls.only }};2181{{ end }}
{{- end }}

{{- /* The configuration of all servers. Which of them a server is, its pod's ordinal says. */}}
{{- define "gozkd.config" -}}
{{- $keys := dict "dataDir" "/data" "admin.serverAddress" "0.0.0.0" "admin.serverPort" 8080 "4lw.commands.whitelist" "srvr,ruok,mntr" "quorumListenOnAllIPs" true -}}
{{- if and .Values.tls.only (not .Values.tls.secretName) }}{{ fail "tls.only needs tls.secretName: without it there is no port for clients" }}{{ end -}}
{{- if not .Values.tls.only }}{{ $_ := set $keys "clientPort" 2181 }}{{ end -}}
{{- $_ := set $keys "db.autocreate" (not .Values.persistence.enabled) -}}
{{- if .Values.persistence.logSize }}{{ $_ := set $keys "dataLogDir" "/datalog" }}{{ end -}}
{{- if .Values.metrics.enabled }}{{ $_ := set $keys "metricsProvider.className" "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider" }}{{ end -}}
{{- if .Values.memory }}{{ $_ := set $keys "gozkd.dataLimitKB" "75%" }}{{ end -}}
{{- if .Values.archive.url }}{{ $_ := set $keys "gozkd.archive.url" .Values.archive.url }}{{ end -}}
{{- if .Values.peerSecret.secretName }}{{ $_ := set $keys "gozkd.peer.secretFile" "/peer/secret" }}{{ end -}}
{{- $servers := int .Values.replicas -}}
{{- if .Values.scaling.enabled -}}
{{- $servers = int .Values.scaling.founders -}}
{{- if or (lt $servers 2) (lt (int .Values.replicas) 2) }}{{ fail "scaling needs 2 founders and 2 replicas at least" }}{{ end -}}
{{- if not .Values.peerSecret.secretName }}{{ fail "scaling needs peerSecret.secretName: a new server proves by it that it belongs to the ensemble" }}{{ end -}}
{{- $_ := set $keys "reconfigEnabled" true -}}
{{- $_ := set $keys "gozkd.scale.url" (printf "https://kubernetes.default.svc/apis/apps/v1/namespaces/%s/statefulsets/%s/scale" .Release.Namespace (include "gozkd.name" .)) -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $_ := set $keys "secureClientPort" 2281 -}}
{{- $_ := set $keys "ssl.keyStore.location" "/tls/tls-combined.pem" -}}
{{- $_ := set $keys "ssl.trustStore.location" "/tls/ca.crt" -}}
{{- $_ := set $keys "ssl.keyStore.type" "PEM" -}}
{{- $_ := set $keys "ssl.trustStore.type" "PEM" -}}
{{- $_ := set $keys "ssl.clientAuth" .Values.tls.clientAuth -}}
{{- if .Values.tls.quorum -}}
{{- $_ := set $keys "sslQuorum" true -}}
{{- $_ := set $keys "ssl.quorum.keyStore.location" "/tls/tls-combined.pem" -}}
{{- $_ := set $keys "ssl.quorum.trustStore.location" "/tls/ca.crt" -}}
{{- $_ := set $keys "ssl.quorum.keyStore.type" "PEM" -}}
{{- $_ := set $keys "ssl.quorum.trustStore.type" "PEM" -}}
{{- end -}}
{{- end -}}
{{- /* Not by merge, to which false and 0 are no values. */}}
{{- range $key, $value := .Values.config }}{{ $_ := set $keys $key $value }}{{ end -}}
{{- range $key, $value := $keys }}
{{- /* Helm reads 3600000 in a file of values as a floating-point number, and prints 3.6e+06. */}}
{{ $key }}={{ if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- if gt $servers 1 }}
{{- range $id := untilStep 1 (int (add1 $servers)) 1 }}
server.{{ $id }}={{ include "gozkd.line" (dict "root" $ "id" $id) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Refuses a change after which the first server that restarts could not speak with the others. Only Helm in a cluster
sees the configuration that runs. */}}
{{- define "gozkd.rounds" -}}
{{- $before := dig "data" "zoo.cfg" "" (lookup "v1" "ConfigMap" .Release.Namespace (include "gozkd.name" .)) -}}
{{- $after := include "gozkd.config" . -}}
{{- if and $before (gt (int .Values.replicas) 1) -}}
{{- $secret := "gozkd.peer.secretFile=" -}}
{{- $proves := ternary $after $before (contains $secret $after) -}}
{{- if and (ne (contains $secret $before) (contains $secret $after)) (not (contains "gozkd.peer.secretMode=prefer" $proves)) -}}
{{- fail "peerSecret of running servers changes in two rounds, first with gozkd.peer.secretMode=prefer in config: docs/guide/container.md, Changes between running servers" -}}
{{- end -}}
{{- $both := "\nportUnification=true" -}}
{{- if and (ne (contains "\nsslQuorum=true" $before) (contains "\nsslQuorum=true" $after)) (not (and (contains $both $before) (contains $both $after))) -}}
{{- fail "tls.quorum of running servers changes in three rounds, the first and the second with portUnification=true in config: docs/guide/container.md, Changes between running servers" -}}
{{- end -}}
{{- end -}}
{{- end }}
