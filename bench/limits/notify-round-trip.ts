import type pg from 'pg';
import { openPool } from '../open-pool.ts';

/** The limit of latency: a row is committed together with a notification, and a listener receives it. */
export interface NotifyRoundTrip {
  /** Milliseconds from sending the statement until the listener has received the notification. */
  once(): Promise<number>;
  close(): Promise<void>;
}

export async function createNotifyRoundTrip(url: string, listener: pg.Client): Promise<NotifyRoundTrip> {
  const writer = openPool(url, 10);
  await writer.query('create table if not exists notified (n bigint)');
  await listener.query('listen bench');
  const waiting = new Map<string, () => void>();
  listener.on('notification', ({ payload = '' }) => waiting.get(payload)?.());
  let sent = 0;
  return {
    async once() {
      const number = String(++sent);
      const heard = new Promise<void>((resolve) => waiting.set(number, resolve));
      const start = performance.now();
      const text = "with written as (insert into notified values ($1)) select pg_notify('bench', $1::text)";
      const written = writer.query({ name: 'notify', text, values: [number] });
      await heard;
      const took = performance.now() - start;
      waiting.delete(number);
      await written;
      return took;
    },
    close: () => writer.end(),
  };
}
