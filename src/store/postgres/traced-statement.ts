import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { recordedTrace, traced } from '../../tracing.ts';

// Texts of statements that are built for a query. Their number is unbounded.
const summaries = new LRUCache<string, string>({ max: 1000 });

/** Sends a statement in a span, if it is part of something that is recorded. Statements of periodic tasks are not. */
export function tracedStatement<T>(client: pg.ClientBase, text: string, send: () => Promise<T>): Promise<T> {
  const within = recordedTrace();
  if (!within) return send();
  const summary = summaryOf(text);
  const { host, port, database } = client as pg.Client; // the pool creates its connections from a subclass of it
  const attributes = {
    'db.system.name': 'postgresql',
    'db.namespace': database,
    'db.query.summary': summary,
    'server.address': host,
    'server.port': port,
  };
  return traced(summary, { kind: 'client', attributes, within }, async (span) => {
    try {
      return await send();
    } catch (error) {
      if (error instanceof Error && 'code' in error && typeof error.code === 'string')
        span.set({ 'db.response.status_code': error.code });
      throw error;
    }
  });
}

/**
 * What a statement does to which relations: `INSERT refold.events SELECT refold.streams`. It names no values, and is the same for all statements of
 * a kind.
 */
export function summaryOf(text: string): string {
  const known = summaries.get(text);
  if (known !== undefined) return known;
  const parts = [...text.matchAll(mentions)].map(([, verb = '', relation = '']) => {
    const action = /^(?:from|join|using)$/i.test(verb) ? 'SELECT' : (verb.split(/\s/)[0] ?? '').toUpperCase();
    return `${action} ${relation.replaceAll('"', '')}`;
  });
  const first = /\w+/.exec(text)?.[0].toUpperCase() ?? 'statement';
  const summary = parts.length === 0 ? first : [...new Set(parts)].join(' ').slice(0, longestSummary);
  summaries.set(text, summary);
  return summary;
}

// The limit of OpenTelemetry's conventions.
const longestSummary = 255;

// Only names with a schema: others are those of common table expressions, columns and functions.
const mentions =
  /\b(insert\s+into|update|delete\s+from|merge\s+into|copy|from|join|using)\s+(?:only\s+)?("?\w+"?\."?\w+"?)/gi;
