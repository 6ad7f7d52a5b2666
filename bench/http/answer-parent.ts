import type { FromServer, ToServer } from './server-process.ts';

/** What a server process of the benchmarks does beside serving: says where it listens, tells what it uses, ends when told to. */
export function answerParent(url: string, stop: () => Promise<void>): void {
  const tell = (message: FromServer) => process.send?.(message);
  process.on('message', (message: ToServer) => {
    if (message === 'processor') {
      const { user, system } = process.cpuUsage();
      tell({ processor: user + system });
    }
    if (message !== 'memory') return;
    globalThis.gc?.();
    tell({ memory: process.memoryUsage().rss });
  });
  const end = () => void stop().finally(() => process.exit(0));
  process.once('SIGTERM', end);
  process.once('disconnect', end);
  tell({ url });
}
