import { readFile } from 'node:fs/promises';

/**
 * Milliseconds, since the system started, in which a process that could run had no processor: Linux's pressure stall information. 0 where the
 * system does not count them.
 */
export async function cpuWaitMilliseconds(): Promise<number> {
  const text = await readFile('/proc/pressure/cpu', 'utf8').catch(() => '');
  return Number(/^some .*total=(\d+)/m.exec(text)?.[1] ?? 0) / 1000;
}
