import { readFile } from 'node:fs/promises';

/**
 * Milliseconds in which a process that could run had no processor, counted by Linux's pressure stall information: those of this process's
 * control group if it has one, so that others on the machine do not count, else those of the system. 0 where they are not counted.
 */
export async function cpuWaitMilliseconds(): Promise<number> {
  const group = /^0::(\/.+)$/m.exec(await text('/proc/self/cgroup'))?.[1];
  const own =
    group &&
    ((await text(`/sys/fs/cgroup${group}/cpu.pressure`)) ||
      (await text(`/sys/fs/cgroup/unified${group}/cpu.pressure`)));
  return Number(/^some .*total=(\d+)/m.exec(own || (await text('/proc/pressure/cpu')))?.[1] ?? 0) / 1000;
}

const text = (path: string) => readFile(path, 'utf8').catch(() => '');
