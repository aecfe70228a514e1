{{- /* The policy as text, with steering if the values want it and the policy does not say how. */ -}}
{{- define "rebalancer.policyText" -}}
{{- if not (include "rebalancer.policyConfigMap" .) -}}
{{- $text := include "rebalancer.givenPolicy" . -}}
{{- $text -}}
{{- if and (.Values.steering).enabled (not (hasKey ($text | fromYaml) "steering")) -}}
{{- if hasPrefix "{" $text -}}
{{- fail "steering.enabled adds a line to the policy, which policy.text in JSON cannot take: write \"steering\": {} into the policy" -}}
{{- end }}
steering: {key: {{ (.Values.steering).key | quote }}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The ConfigMap of one's own that holds the policy, whose text is not known here; empty where none is named. */ -}}
{{- define "rebalancer.policyConfigMap" -}}
{{- with .Values.policy -}}
{{- if .configMapName -}}
{{- if or .text $.Values.deschedulerPolicy -}}
{{- fail "policy.configMapName and policy.text or deschedulerPolicy are two policies: give one of them" -}}
{{- end -}}
{{ .configMapName }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The volume with policy.yaml, and with scheduler.yaml where that is given as text. */ -}}
{{- define "rebalancer.policyVolume" -}}
name: policy-volume
{{- if include "rebalancer.policyConfigMap" . }}
projected:
  sources:
    - configMap:
        name: {{ include "rebalancer.policyConfigMap" . }}
        items: [{key: {{ default "policy.yaml" .Values.policy.key | quote }}, path: policy.yaml}]
    {{- if (.Values.schedulerConfig).text }}
    - configMap:
        name: {{ include "rebalancer.fullname" . }}
    {{- end }}
{{- else }}
configMap:
  name: {{ include "rebalancer.fullname" . }}
{{- end }}
{{- end -}}

{{- /* Whether nodes are changed: "true", or empty. */ -}}
{{- define "rebalancer.steers" -}}
{{- $policy := include "rebalancer.policyText" . | fromYaml -}}
{{- $said := and (hasKey $policy "steering") (not (kindIs "invalid" $policy.steering)) -}}
{{- if include "rebalancer.policyConfigMap" . }}{{ $said = (.Values.steering).enabled }}{{ end -}}
{{- $option := and (hasKey (.Values.cmdOptions | default dict) "steer") (ne (toString (get (.Values.cmdOptions | default dict) "steer")) "false") -}}
{{- if and (or $said $option (has "--steer" .Values.extraArgs)) (not (include "rebalancer.dryRun" .)) -}}true{{- end -}}
{{- end -}}

{{- /* Whether nodes that were emptied are held: "true", or empty. */ -}}
{{- define "rebalancer.holds" -}}
{{- $policy := include "rebalancer.policyText" . | fromYaml -}}
{{- $given := or $policy.hold (get (.Values.cmdOptions | default dict) "hold") (has "--hold" .Values.extraArgs) -}}
{{- range .Values.extraArgs }}{{ if hasPrefix "--hold=" . }}{{ $given = true }}{{ end }}{{ end -}}
{{- if and $given (not (include "rebalancer.dryRun" .)) -}}true{{- end -}}
{{- end -}}

{{- /* Whether `mark` changes nodes: "true", or empty. */ -}}
{{- define "rebalancer.marks" -}}
{{- if and (.Values.marking).enabled (not (include "rebalancer.dryRun" .)) -}}true{{- end -}}
{{- end -}}

{{- /* Whether nodes are changed at all: "true", or empty. */ -}}
{{- define "rebalancer.changesNodes" -}}
{{- if or (include "rebalancer.steers" .) (include "rebalancer.holds" .) (include "rebalancer.marks" .) -}}true{{- end -}}
{{- end -}}

{{- /* The rules of `mark` as text. */ -}}
{{- define "rebalancer.markingRules" -}}
{{- with .Values.marking -}}
{{- if not .rules -}}
{{- fail "marking.enabled needs marking.rules: when is a node under pressure? docs/marking.md has an example" -}}
{{- end -}}
{{- if not (or .label .taint) -}}
{{- fail "marking.enabled needs marking.label, marking.taint, or both" -}}
{{- end -}}
{{- $mark := dict -}}
{{- if .label }}{{ $_ := set $mark "label" .label }}{{ end -}}
{{- if .taint }}{{ $_ := set $mark "taint" .taint }}{{ end -}}
{{- dict "apiVersion" "rebalancer/v1" "kind" "MarkingRules" "rules" .rules "mark" $mark "maxNodes" .maxNodes "expiry" .expiry | toYaml -}}
{{- end -}}
{{- end -}}

{{- /* The key of the soft taints; the one that hot nodes carry as well has -more appended. */ -}}
{{- define "rebalancer.avoidKey" -}}
{{- $steering := get (include "rebalancer.policyText" . | fromYaml) "steering" | default dict -}}
{{- default (.Values.steering).key $steering.key -}}
{{- end -}}

{{- /* The policy as it was given: deschedulerPolicy, else policy.text (or the ConfigMap in it), else the preset. */ -}}
{{- define "rebalancer.givenPolicy" -}}
{{- if and .Values.deschedulerPolicy (.Values.policy).text -}}
{{- fail "deschedulerPolicy and policy.text are two policies: give one of them" -}}
{{- end -}}
{{- if .Values.deschedulerPolicy -}}
{{- if not (or .Values.deschedulerPolicy.profiles .Values.deschedulerPolicy.strategies) -}}
{{- fail "deschedulerPolicy has no profiles, so it would evict nothing: it takes the place of the preset and is not merged with it. Give the whole policy" -}}
{{- end -}}
apiVersion: {{ .Values.deschedulerPolicyAPIVersion }}
kind: DeschedulerPolicy
{{ tpl (toYaml (omit .Values.deschedulerPolicy "apiVersion" "kind")) . }}
{{- else if (.Values.policy).text -}}
{{- $text := (.Values.policy).text | trim -}}
{{- $read := $text | fromYaml -}}
{{- if eq (toString $read.kind) "ConfigMap" -}}
{{- range $read.data }}{{ if or (eq (len $read.data) 1) (contains "DeschedulerPolicy" .) }}{{ $text = trim . }}{{ end }}{{ end -}}
{{- end -}}
{{ $text }}
{{- else -}}
{{- $name := default "safe" (.Values.policy).preset -}}
{{- $file := printf "presets/%s.yaml" $name -}}
{{- $preset := .Files.Get $file -}}
{{- if not $preset -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "presets/*.yaml" -}}
{{- $known = append $known ($path | base | trimSuffix ".yaml") -}}
{{- end -}}
{{- fail (printf "policy.preset: there is no preset %q; there are %s" $name (join ", " (sortAlpha $known))) -}}
{{- end -}}
{{ $preset | trim }}
{{- end -}}
{{- end -}}

{{- /*
What the policy asks of the API server beside nodes, pods and PodDisruptionBudgets, as YAML: what it uses of
namespaces, priorityclasses, claims and metrics, whether it asks where the scheduler would put pods, and the Secrets
with its tokens.  Of a policy in a ConfigMap of one's own nothing is known: it gets all that may be read, and no Secrets.
*/ -}}
{{- define "rebalancer.needs" -}}
{{- $policy := include "rebalancer.policyText" . | fromYaml -}}
{{- if hasKey $policy "Error" -}}
{{- fail (printf "the policy is not valid YAML: %s" $policy.Error) -}}
{{- end -}}
{{- $needs := dict "namespaces" false "priorityclasses" false "claims" false "metrics" false "scheduler" false "trust" false "restart" false "secrets" list -}}
{{- $apart := "RemovePodsViolatingInterPodAntiAffinity" -}}
{{- $sources := list -}}
{{- range $profile := $policy.profiles -}}
  {{- $plugins := $profile.plugins | default dict -}}
  {{- $deschedule := ($plugins.deschedule | default dict).enabled | default list -}}
  {{- $balance := ($plugins.balance | default dict).enabled | default list -}}
  {{- $enabled := concat $deschedule $balance -}}
  {{- if has $apart $enabled -}}{{- $_ := set $needs "namespaces" true -}}{{- end -}}
  {{- range $entry := $profile.pluginConfig -}}
    {{- $args := $entry.args | default dict -}}
    {{- if eq $entry.name "DefaultEvictor" -}}
      {{- if $args.namespaceLabelSelector -}}{{- $_ := set $needs "namespaces" true -}}{{- end -}}
      {{- if ($args.priorityThreshold | default dict).name -}}{{- $_ := set $needs "priorityclasses" true -}}{{- end -}}
      {{- if eq (toString $args.nodeFit) "scheduler" -}}{{- $_ := set $needs "scheduler" true -}}{{- end -}}
      {{- $protections := $args.podProtections | default dict -}}
      {{- $claims := ($protections.config | default dict).PodsWithPVC | default dict -}}
      {{- if and (or $args.ignorePvcPods (has "PodsWithPVC" ($protections.extraEnabled | default list))) $claims.protectedStorageClasses -}}
        {{- $_ := set $needs "claims" true -}}
      {{- end -}}
    {{- else if has $entry.name $enabled -}}
      {{- $usage := $args.metricsUtilization | default dict -}}
      {{- if and (or $usage.selection (eq (toString $args.selection) "compaction")) (ne ($usage.scheduler | default "default") "unknown") -}}
        {{- $_ := set $needs "scheduler" true -}}
      {{- end -}}
      {{- if or $usage.selection (eq (toString $args.selection) "compaction") -}}{{- $_ := set $needs "trust" true -}}{{- end -}}
      {{- if $usage -}}
        {{- $sources = append $sources ($usage.source | default (ternary "KubernetesMetrics" "" ($usage.metricsServer | default false))) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $policy.appetite) -}}{{- $_ := set $needs "trust" true -}}{{- end -}}
{{- if hasKey $policy "trust" -}}
  {{- if not (kindIs "invalid" $policy.trust) -}}
  {{- $_ := set $needs "trust" (ne (toString (get $policy.trust "enabled")) "false") -}}
  {{- $_ := set $needs "restart" (and $needs.trust (has (toString (get $policy.trust "restart")) (list "true" "annotated"))) -}}
  {{- end -}}
{{- end -}}
{{- $steer := get ($.Values.cmdOptions | default dict) "steer" -}}
{{- $steered := and (hasKey ($.Values.cmdOptions | default dict) "steer") (ne (toString $steer) "false") -}}
{{- if or $steered (has "--steer" $.Values.extraArgs) (not (kindIs "invalid" $policy.steering)) -}}{{- $_ := set $needs "scheduler" true -}}{{- end -}}
{{- range $name, $strategy := $policy.strategies -}}
  {{- if $strategy.enabled -}}
    {{- if eq $name $apart -}}{{- $_ := set $needs "namespaces" true -}}{{- end -}}
    {{- if ($strategy.params | default dict).thresholdPriorityClassName -}}{{- $_ := set $needs "priorityclasses" true -}}{{- end -}}
  {{- end -}}
{{- end -}}
{{- /* Rules of marking, and a scheduler that goes by load, may ask what no strategy asks. */ -}}
{{- if ($.Values.marking).enabled -}}{{- $sources = concat $sources (list "Prometheus" "KubernetesMetrics") -}}{{- end -}}
{{- if include "rebalancer.schedulerConfig" $ -}}{{- $sources = append $sources "KubernetesMetrics" -}}{{- end -}}
{{- $measured := ($policy.metricsCollector | default dict).enabled | default false -}}
{{- range $provider := $policy.metricsProviders -}}
  {{- if eq $provider.source "KubernetesMetrics" -}}{{- $measured = true -}}{{- end -}}
  {{- $token := ($provider.prometheus | default dict).authToken | default dict -}}
  {{- if and (eq $provider.source "Prometheus") (has "Prometheus" $sources) $token.secretReference -}}
    {{- $_ := set $needs "secrets" (append $needs.secrets $token.secretReference) -}}
  {{- end -}}
{{- end -}}
{{- if and $measured (or (has "KubernetesMetrics" $sources) (has "LoadWatcher" $sources)) -}}
  {{- $_ := set $needs "metrics" true -}}
{{- end -}}
{{- if include "rebalancer.policyConfigMap" . -}}
{{- $needs = dict "namespaces" true "priorityclasses" true "claims" true "metrics" true "scheduler" true "trust" true "restart" false "secrets" list -}}
{{- end -}}
{{- toYaml $needs -}}
{{- end -}}

{{- /* The ConfigMap of the memory: one for each release. */ -}}
{{- define "rebalancer.memoryName" -}}
{{- $fullname := include "rebalancer.fullname" . -}}
{{- if eq $fullname "rebalancer" -}}kube-rebalancer-memory{{- else -}}{{ $fullname | trunc 56 | trimSuffix "-" }}-memory{{- end -}}
{{- end -}}

{{- /* Where the container finds the scheduler's configuration; empty where none is given. */ -}}
{{- define "rebalancer.schedulerConfig" -}}
{{- with .Values.schedulerConfig -}}
{{- if and .text .configMapName -}}
{{- fail "schedulerConfig.text and schedulerConfig.configMapName are two configurations: give one of them" -}}
{{- end -}}
{{- if .text -}}
/policy-dir/scheduler.yaml
{{- else if .configMapName -}}
/scheduler-dir/{{ required "schedulerConfig.key is needed with schedulerConfig.configMapName" .key }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Whether nothing is evicted: "true", or empty. */ -}}
{{- define "rebalancer.dryRun" -}}
{{- $option := get (.Values.cmdOptions | default dict) "dry-run" -}}
{{- $given := and (hasKey (.Values.cmdOptions | default dict) "dry-run") (ne (toString $option) "false") -}}
{{- if or .Values.dryRun $given (has "--dry-run" .Values.extraArgs) -}}true{{- end -}}
{{- end -}}

{{- /* A limit in words. */ -}}
{{- define "rebalancer.limit" -}}
{{- if kindIs "invalid" . }}any number{{ else if kindIs "string" . }}{{ . }} of the pods{{ else }}{{ int64 . }}{{ end -}}
{{- end -}}
