import { spawn } from 'node:child_process'

/**
 * A shell that outlives this process and then cleans up: it reads from a pipe that the system closes however this
 * process ends (exit, SIGINT, SIGKILL, a test runner that loses patience), kills the brokers that are left and removes
 * their folder. A handler of 'exit' or of a signal would miss some of these.
 */
const SCRIPT = `
pids=" "
while read -r word pid; do
  case $word in
    add) pids="$pids$pid " ;;
    gone) pids=$(printf '%s' "$pids" | sed "s/ $pid / /") ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
rm -rf "$1"
`

export interface Guard {
  readonly pid: number
  add(pid: number): void
  gone(pid: number): void
  /** Ends the guard, which removes the folder; resolves when both are gone. */
  release(): Promise<void>
}

export function guard(folder: string): Guard {
  const shell = spawn('sh', ['-c', SCRIPT, 'broker-guard', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()))
  // The guard must not keep its process alive: that it may end is the whole point.
  shell.unref()
  ;(shell.stdin as unknown as { unref(): void }).unref()
  shell.stdin.on('error', () => undefined)
  return {
    pid: shell.pid ?? 0,
    add: (pid) => void shell.stdin.write(`add ${pid}\n`),
    gone: (pid) => void shell.stdin.write(`gone ${pid}\n`),
    release() {
      shell.ref()
      shell.stdin.end()
      return ended
    },
  }
}
