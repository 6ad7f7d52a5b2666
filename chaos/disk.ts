import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system for the server's files only, which can be full. */
export interface Disk {
  readonly directory: string;
  /** Nothing more fits. */
  fill(): void;
  free(): void;
  /** Leaves it mounted when this process ends. */
  keep(): void;
  unmount(): void;
}

/** Memory is used only for written data. */
const size = '16g';

/** Mounts one. If the machine does not permit it, returns the reason. */
export function mountDisk(): Disk | string {
  const directory = mkdtempSync(join(tmpdir(), 'refold-chaos-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0755`, 'refold-chaos', directory], {
      stdio: 'pipe',
    });
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    return error instanceof Error ? error.message.trim() : String(error);
  }
  chmodSync(directory, 0o755);
  const resize = (to: string) => {
    execFileSync('mount', ['-o', `remount,size=${to}`, directory], { stdio: 'pipe' });
  };
  const unmount = () => {
    process.off('exit', unmount);
    execFileSync('umount', ['--lazy', directory], { stdio: 'pipe' });
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', unmount);
  return {
    directory,
    fill() {
      const used = execFileSync('df', ['--output=used', '-B1024', directory], { encoding: 'utf8' }).split('\n')[1];
      // What it already holds plus a little: the system refuses a smaller size.
      resize(`${Number(used) + 64}k`);
    },
    free: () => resize(size),
    keep: () => void process.off('exit', unmount),
    unmount,
  };
}
