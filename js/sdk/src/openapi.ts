/* Made by js/sdk/types.mjs of the server's specification: do not change it by hand. */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** Bind */
        Bind: {
            host: string;
            path: string;
            /** @enum {string} */
            mode?: "ro" | "rw";
        };
        /**
         * CellEnd
         * @description what became of a cell, without its output
         */
        CellEnd: {
            results_truncated: boolean;
            execution_count: number;
            error: components["schemas"]["Exception"] | null;
            kernel_id: string | null;
            /** @description the first in a kernel whose forerunner died */
            kernel_restarted: boolean;
            /** @description null after a timeout */
            exit_code: number | null;
            timed_out: boolean;
            duration_ms: number;
            files: components["schemas"]["ResultFile"][];
            id: string;
            /** @enum {string} */
            status: "ok" | "error" | "timeout" | "memory_exceeded" | "killed" | "interrupted";
            /** @description the one that killed it */
            signal: number | null;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
            files_truncated: boolean;
            limit_hit: ("memory" | "time" | "cpu" | "pids" | "disk" | "output" | "network") | null;
            /** @description what the sandbox refused */
            denied: components["schemas"]["Denial"][];
            usage: components["schemas"]["Usage"];
            profile: string;
            /** @description whether the sandbox was ready before */
            warm: boolean;
            /** @description in words: which limit did what, and what was cut */
            warnings?: string[];
        };
        /** CellOutput */
        CellOutput: {
            /** @description by MIME type */
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            /** @description the value of the last expression */
            is_main_result: boolean;
        };
        /** CellRequest */
        CellRequest: {
            /** @description a cell */
            code: string;
            /**
             * @description null: the default kernel
             * @default null
             */
            kernel_id?: string | null;
            /**
             * @description then it is interrupted
             * @default 30000
             */
            timeout_ms?: number;
            /** @description environment variables for this execution */
            env?: {
                [key: string]: string;
            };
            /**
             * @description what input() and sys.stdin read, then the end of the file
             * @default null
             */
            stdin?: string | null;
            /** @description whether somebody answers input(); true for streams */
            allow_stdin?: boolean;
            /**
             * @description no result, no history, no count
             * @default false
             */
            silent?: boolean;
            /** @default true */
            store_history?: boolean;
            /**
             * @description of figures
             * @default [
             *       "png"
             *     ]
             */
            formats?: ("png" | "retina" | "jpeg" | "svg" | "pdf")[];
            /** @description processor time */
            cpu_seconds?: number;
            /** @description kept of stdout, and as much of stderr */
            output_bytes?: number;
            /**
             * @description what happens when the client goes away
             * @default interrupt
             * @enum {string}
             */
            on_disconnect?: "interrupt" | "continue";
        };
        /**
         * CellResult
         * @description what became of a cell
         */
        CellResult: {
            stdout: string;
            stderr: string;
            results: components["schemas"]["CellOutput"][];
            /** @description the last expression's value, as text */
            text: string | null;
            results_truncated: boolean;
            execution_count: number;
            error: components["schemas"]["Exception"] | null;
            kernel_id: string | null;
            /** @description the first in a kernel whose forerunner died */
            kernel_restarted: boolean;
            /** @description null after a timeout */
            exit_code: number | null;
            timed_out: boolean;
            duration_ms: number;
            files: components["schemas"]["ResultFile"][];
            id: string;
            /** @enum {string} */
            status: "ok" | "error" | "timeout" | "memory_exceeded" | "killed" | "interrupted";
            /** @description the one that killed it */
            signal: number | null;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
            files_truncated: boolean;
            limit_hit: ("memory" | "time" | "cpu" | "pids" | "disk" | "output" | "network") | null;
            /** @description what the sandbox refused */
            denied: components["schemas"]["Denial"][];
            usage: components["schemas"]["Usage"];
            profile: string;
            /** @description whether the sandbox was ready before */
            warm: boolean;
            /** @description in words: which limit did what, and what was cut */
            warnings?: string[];
        };
        /** CellStart */
        CellStart: {
            /** @description of the execution */
            id: string;
            kernel_id: string | null;
            /** @description it began under an earlier server */
            resumed?: boolean;
        };
        /** Clear */
        Clear: {
            /** @description not before there is something new */
            wait: boolean;
        };
        /** Command */
        Command: {
            id: string;
            /** @enum {string} */
            status: "running" | "exited" | "killed" | "timeout";
            cmd: string;
            cwd: string;
            terminal: boolean;
            /** @description unix time */
            created: number;
            exit_code: number | null;
            /** @description the one that killed it */
            signal: number | null;
            timed_out: boolean;
            duration_ms: number;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
            denied: components["schemas"]["Denial"][];
            /** @description why it could not run */
            problem: string | null;
            /** @description in words: which limit did what, and what was cut */
            warnings?: string[];
        };
        /** CommandResult */
        CommandResult: {
            stdout: string;
            stderr: string;
            id: string;
            /** @enum {string} */
            status: "running" | "exited" | "killed" | "timeout";
            cmd: string;
            cwd: string;
            terminal: boolean;
            /** @description unix time */
            created: number;
            exit_code: number | null;
            /** @description the one that killed it */
            signal: number | null;
            timed_out: boolean;
            duration_ms: number;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
            denied: components["schemas"]["Denial"][];
            /** @description why it could not run */
            problem: string | null;
            /** @description in words: which limit did what, and what was cut */
            warnings?: string[];
        };
        /** Completion */
        Completion: {
            matches: string[];
            /** @description of each match */
            types: string[];
            /** @description what they replace, in characters */
            start: number;
            end: number;
        };
        /** Denial */
        Denial: {
            /** @description what was tried */
            op: string;
            detail: string;
            /** @description what refused it */
            rule: string;
        };
        /** Displayed */
        Displayed: {
            /** @description by MIME type */
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            display_id: string | null;
            /** @description instead of what was shown with this id */
            update: boolean;
        };
        /** EngineState */
        EngineState: {
            version: string;
            sandboxes: number;
            live_sandboxes: number;
            max_sandboxes: number;
            executions: number;
            memory_budget_mb: number;
            memory_charged_bytes: number;
            trouble: string | null;
            /** @description unix time */
            started: number;
            uptime_seconds: number;
            running: number;
            queued: number;
            requests: number;
            memory_bytes: number;
            restarts: components["schemas"]["Restarts"];
            profiles: components["schemas"]["ProfileState"][];
        };
        /** ErrorCause */
        ErrorCause: {
            /**
             * @description stable: for programs
             * @enum {string}
             */
            code: "bad_request" | "bad_body" | "bad_form" | "bad_header" | "no_key" | "bad_key" | "bad_link" | "bad_origin" | "no_route" | "bad_method" | "body_too_large" | "bad_handshake" | "no_websocket" | "bad_host" | "bad_fields" | "bad_json" | "bad_value" | "bad_base64" | "bad_idempotency_key" | "idempotency_key_reused" | "idempotency_key_busy" | "idempotency_keys_full" | "reply_not_kept" | "client_gone" | "too_many_at_once" | "too_many_requests" | "too_much_cpu" | "too_many_executions" | "too_many_commands" | "too_many_archives" | "too_many_sandboxes" | "too_many_connections" | "too_many_listeners" | "bodies_full" | "queue_full" | "queue_timeout" | "memory_budget" | "no_descriptors" | "no_port" | "no_sandbox" | "sandbox_busy" | "sandbox_lost" | "audit_unavailable" | "unknown_profile" | "profile_broken" | "no_such_profile" | "no_right" | "profiles_off" | "profile_exists" | "profile_building" | "profile_in_use" | "too_many_profiles" | "too_many_builds" | "profiles_full" | "limit_too_high" | "code_too_long" | "no_execution" | "interrupted" | "network_rule_invalid" | "network_not_allowed" | "network_unavailable" | "no_file" | "file_too_large" | "disk_full" | "bad_path" | "bad_range" | "bad_archive" | "no_such_path" | "path_taken" | "not_empty" | "path_busy" | "no_access" | "bind_not_allowed" | "bad_bind" | "no_such_sandbox" | "sandbox_gone" | "sandbox_paused" | "name_taken" | "cannot_pause" | "cannot_listen" | "port_closed" | "port_bad_answer" | "port_timeout" | "no_ports_domain" | "ports_unavailable" | "cannot_limit" | "no_such_kernel" | "kernel_gone" | "kernel_busy" | "kernel_failed" | "is_default" | "not_waiting" | "no_such_command" | "no_events" | "command_over" | "no_terminal" | "stdin_closed" | "stdin_full" | "no_such_module" | "modules_failed" | "modules_timeout" | "no_such_kernelspec" | "no_such_session" | "no_such_file" | "session_exists" | "not_a_file" | "list_too_long" | "efast_off" | "efast_not_allowed" | "internal";
            /** @description what happened */
            message: string;
            /** @description what to do */
            remediation: string;
            /** @description whether the same request may do better later */
            retryable: boolean;
        };
        /** Exception */
        Exception: {
            name: string;
            value: string;
            /** @description line by line */
            traceback: string[];
        };
        /** FileEntry */
        FileEntry: {
            name: string;
            path: string;
            /** @description for URLs, where the path is not UTF-8 */
            path_encoded?: string;
            /** @enum {string} */
            type: "file" | "directory" | "symlink" | "other";
            size_bytes: number;
            /** @description octal, as 0644 */
            mode: string;
            /** @description unix time */
            modified: number;
            /** @description of a symbolic link */
            target?: string;
        };
        /** FileMade */
        FileMade: {
            path: string;
            size_bytes: number;
        };
        /** FilesInfo */
        FilesInfo: {
            max_mb: number;
            ttl_seconds: number;
        };
        /** Info */
        Info: {
            /** @constant */
            name: "cloche";
            version: string;
            uptime_seconds: number;
            /** @description of isolation */
            minimum: string;
            defaults: components["schemas"]["LimitsInForce"];
            maxima: components["schemas"]["LimitsInForce"];
            live: components["schemas"]["LiveInfo"];
            files: components["schemas"]["FilesInfo"];
            network: components["schemas"]["NetworkInfo"];
            isolation: components["schemas"]["IsolationLayer"][];
            engine: components["schemas"]["EngineState"];
        };
        /**
         * Input
         * @description it waits for an answer to input()
         */
        Input: {
            prompt: string;
            /** @description what is typed should not be seen */
            password: boolean;
        };
        /** Inspection */
        Inspection: {
            found: boolean;
            /** @description by MIME type */
            data: {
                [key: string]: string;
            };
        };
        /** InstalledPackage */
        InstalledPackage: {
            name: string;
            version: string;
            sha256?: string;
        };
        /** IsolationLayer */
        IsolationLayer: {
            layer: string;
            /** @enum {string} */
            state: "ok" | "weak" | "missing";
            detail: string;
        };
        /**
         * JsonInner
         * @description any JSON, in an array of arrays
         */
        JsonInner: null | boolean | number | string | {
            [key: string]: components["schemas"]["JsonValue"];
        } | unknown[];
        /**
         * JsonItem
         * @description any JSON, in an array
         */
        JsonItem: null | boolean | number | string | {
            [key: string]: components["schemas"]["JsonValue"];
        } | components["schemas"]["JsonInner"][];
        /**
         * JsonValue
         * @description any JSON
         */
        JsonValue: null | boolean | number | string | {
            [key: string]: components["schemas"]["JsonValue"];
        } | components["schemas"]["JsonItem"][];
        /** Kernel */
        Kernel: {
            id: string;
            /** @enum {string} */
            state: "starting" | "idle" | "busy";
            execution_count: number;
            /** @description what it runs */
            execution_id: string | null;
            queued: number;
            restarts: number;
            cwd: string;
            is_default: boolean;
            /** @description its own; null: it has none */
            limits: components["schemas"]["KernelLimitsInForce"] | null;
            /** @description with limits of its own */
            usage?: components["schemas"]["KernelUsage"];
        };
        /** KernelLimits */
        KernelLimits: {
            /** @description memory */
            memory_mb?: number;
            /** @description processors at once */
            cpus?: number;
            /** @description processes and threads */
            pids?: number;
        };
        /**
         * KernelLimitsInForce
         * @description null: as much as the sandbox may have
         */
        KernelLimitsInForce: {
            /** @description memory */
            memory_mb: number | null;
            /** @description processors at once */
            cpus: number | null;
            /** @description processes and threads */
            pids: number | null;
        };
        /** KernelUsage */
        KernelUsage: {
            memory_bytes: number;
            memory_peak_bytes: number;
            cpu_ms: number;
            processes: number;
        };
        /** Limits */
        Limits: {
            /** @description memory */
            memory_mb?: number;
            /** @description processor time */
            cpu_seconds?: number;
            /** @description processors at once */
            cpus?: number;
            /** @description processes and threads */
            pids?: number;
            /** @description size of /workspace, /tmp and /dev/shm together */
            disk_mb?: number;
            /** @description open files per process */
            open_files?: number;
            /** @description kept of stdout, and as much of stderr */
            output_bytes?: number;
        };
        /**
         * LimitsInForce
         * @description null: as much as the others allow
         */
        LimitsInForce: {
            /** @description wall clock */
            timeout_ms: number | null;
            /** @description memory */
            memory_mb: number | null;
            /** @description processor time */
            cpu_seconds: number | null;
            /** @description processors at once */
            cpus: number | null;
            /** @description processes and threads */
            pids: number | null;
            /** @description size of /workspace, /tmp and /dev/shm together */
            disk_mb: number | null;
            /** @description open files per process */
            open_files: number | null;
            /** @description kept of stdout, and as much of stderr */
            output_bytes: number | null;
        };
        /** Link */
        Link: {
            url: string;
            /** @description unix time; it ends with the sandbox, or with the key that made it, if that is before */
            expires: number;
        };
        /** ListedFile */
        ListedFile: {
            /** @description unix time */
            upload_time: number;
            file_id: string;
            filename: string;
            size_bytes: number;
        };
        /** LiveInfo */
        LiveInfo: {
            defaults: components["schemas"]["LimitsInForce"];
            ttl_seconds: number;
            max_ttl_seconds: number;
            idle_seconds: number;
            per_tenant: number;
            listeners: number;
        };
        /** NetworkInForce */
        NetworkInForce: components["schemas"]["NetworkWord"] | components["schemas"]["NetworkRules"];
        /** NetworkInfo */
        NetworkInfo: {
            /** @description by the server */
            granted: components["schemas"]["NetworkInForce"];
            /** @description what the key narrows that to */
            key: string | null;
            sets: string[];
            up: boolean;
            problem: string | null;
        };
        /** NetworkPolicy */
        NetworkPolicy: {
            /** @description names, addresses and sets, with ports or without */
            allow?: components["schemas"]["NetworkRule"][];
            /** @description addresses that are refused all the same */
            deny?: string[];
            /** @description every address that is not closed */
            open?: boolean;
            /**
             * @description TLS and HTTP must say a name that is allowed
             * @default true
             */
            strict_tls?: boolean;
            /**
             * @description unreachable: as if there were no network
             * @default denied
             * @enum {string}
             */
            refuse?: "denied" | "unreachable";
            /**
             * @description open at once
             * @default 256
             */
            connections?: number;
            /** @description both ways together, then connections end */
            bytes?: number;
            /** @description in replies: the rules that are for names of everybody, as *.com */
            broad?: string[];
        };
        /** NetworkRule */
        NetworkRule: components["schemas"]["NetworkRuleText"] | components["schemas"]["NetworkRuleObject"];
        /** NetworkRuleList */
        NetworkRuleList: components["schemas"]["NetworkRule"][];
        /** NetworkRuleObject */
        NetworkRuleObject: {
            /** @description a name, or *.NAME */
            domain?: string;
            address?: string;
            cidr?: string;
            /** @description numbers, or "FROM-TO"; any, unless given */
            ports?: (string | number)[];
        };
        /** NetworkRuleText */
        NetworkRuleText: string;
        /** NetworkRules */
        NetworkRules: {
            open?: boolean;
            allow: string[];
            /** @description of those, the ones for names of everybody, as *.com */
            broad?: string[];
            deny?: string[];
            strict_tls?: boolean;
            /** @constant */
            refuse?: "unreachable";
            connections?: number;
            bytes?: number;
        };
        /**
         * NetworkUse
         * @description what a rule of the network let through
         */
        NetworkUse: {
            rule: string;
            connections: number;
            refused: number;
            bytes_out: number;
            bytes_in: number;
        };
        /**
         * NetworkWord
         * @enum {string}
         */
        NetworkWord: "none" | "open";
        /** Port */
        Port: {
            port: number;
            /** @description of this server, where it is reached */
            path: string;
            /** @description its own, where the operator has a domain for that */
            url: string | null;
        };
        /** PortList */
        PortList: {
            ports: components["schemas"]["Port"][];
            /** @description there are more than 1024 */
            truncated: boolean;
        };
        /** Profile */
        Profile: {
            name: string;
            /** @enum {string} */
            state: "starting" | "ready" | "broken" | "restarting" | "building";
            /** @description of its Python */
            version: string | null;
            problem: string | null;
            modules: string[];
            ready_sandboxes: number;
            /** @description variables of all its programs */
            env: {
                [key: string]: string;
            };
            /** @description of a program that asks for nothing */
            limits: components["schemas"]["LimitsInForce"];
            /** @description the same of a live sandbox */
            live_limits: components["schemas"]["LimitsInForce"];
            /** @enum {string} */
            live: "starting" | "ready" | "broken" | "off";
            /** @description why it is broken */
            live_what: string | null;
            /** @description true: this tenant's, made over HTTP; and it has */
            own?: boolean;
            /** @description the profile that its sandboxes are of */
            from?: string;
            /** @description what was asked for */
            requirements?: string[];
            /** @description what that led to; not in lists */
            installed?: components["schemas"]["InstalledPackage"][];
            /** @description what it takes of tenant_profiles_mb */
            bytes?: number;
            /** @description unix time */
            created?: number;
            /** @description sandboxes that have it */
            users?: number;
        };
        /** ProfileState */
        ProfileState: {
            name: string;
            /** @enum {string} */
            state: "starting" | "ready" | "broken" | "restarting";
            /** @description its Python, or why it is broken */
            what: string;
            modules: string;
            ready: number;
            pool: number;
            /** @description another one when what it is made of changed */
            stamp: string;
            /** @description sandboxes that have a program, or are live */
            busy: number;
            making: number;
            queued: number;
            /** @enum {string} */
            live: "starting" | "ready" | "broken" | "off";
            /** @description why it is broken */
            live_what: string | null;
        };
        /** Restarts */
        Restarts: {
            warden: number;
            server: number;
            nurseries: number;
            zygotes: number;
            gate: number;
        };
        /**
         * ResultFile
         * @description what was made or changed
         */
        ResultFile: {
            path: string;
            /** @constant */
            kind: "file";
            /** @description in the file store; null: it is not there */
            file_id: string | null;
            size_bytes: number;
        };
        /** Sandbox */
        Sandbox: {
            id: string;
            name: string | null;
            /** @enum {string} */
            state: "running" | "paused";
            profile: string;
            metadata: {
                [key: string]: string;
            };
            /** @description unix time */
            created: number;
            /** @description unix time */
            expires: number;
            ttl_seconds: number;
            idle_seconds: number;
            /** @description unix time; null while it is in use */
            idle_expires: number | null;
            limits: components["schemas"]["LimitsInForce"];
            kernels: components["schemas"]["Kernel"][];
            usage: components["schemas"]["SandboxUsage"];
            network: components["schemas"]["NetworkInForce"];
            binds: components["schemas"]["Bind"][];
            /** @description its own, when it was asked for */
            port: number | null;
            executions: number;
        };
        /** SandboxUsage */
        SandboxUsage: {
            memory_bytes: number;
            memory_peak_bytes: number;
            cpu_ms: number;
            processes: number;
            disk_bytes?: number;
            files?: number;
        };
        /**
         * Shown
         * @description the value of the last expression
         */
        Shown: {
            /** @description by MIME type */
            data: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            metadata: {
                [key: string]: components["schemas"]["JsonValue"];
            };
            execution_count: number;
            transient?: components["schemas"]["Transient"];
        };
        /** StoredFile */
        StoredFile: {
            file_id: string;
            filename: string;
            size_bytes: number;
        };
        /** Text */
        Text: {
            data: string;
        };
        /** Transient */
        Transient: {
            display_id: string;
        };
        /** Unpacked */
        Unpacked: {
            files: number;
            size_bytes: number;
        };
        /** Usage */
        Usage: {
            wall_ms: number;
            queue_ms: number;
            cpu_ms: number;
            memory_peak_bytes: number;
            output_bytes: number;
            /** @description where there is one */
            network?: components["schemas"]["NetworkUse"][];
        };
        /** Variable */
        Variable: {
            name: string;
            type: string;
            len: number | null;
            shape: number[] | null;
            nbytes: number | null;
            /** @description shortened */
            repr: string;
        };
        /** Variables */
        Variables: {
            variables: components["schemas"]["Variable"][];
            total: number;
            truncated: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;

