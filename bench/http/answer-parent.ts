import type { FromServer, ToServer } from './server-process.ts';

/** The side channel of a benchmark's server process: reports its URL and its resource use, and ends on request. */
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
