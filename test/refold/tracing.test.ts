import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { beforeEach, expect, test } from 'vitest';
import { summaryOf } from '../../src/store/postgres/traced-statement.ts';
import {
  causesOf,
  isTracing,
  recordedTrace,
  recordedTraceparent,
  startTracing,
  traced,
  tracedEffect,
  traceOf,
  traceparent,
} from '../../src/tracing.ts';

const exporter = new InMemorySpanExporter();

beforeEach(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
  await startTracing();
  exporter.reset();
});

const idOf = (number: number) => number.toString(16).padStart(16, '0');
const cause = (number: number, flags = '01') => `00-4bf92f3577b34da6a3ce929d0e0e4736-${idOf(number)}-${flags}`;

test('work that one span has caused is part of its trace', async () => {
  const inside = await tracedEffect('fold', {}, [cause(7)], async () => traceparent());
  const [span] = exporter.getFinishedSpans();
  expect(span).toMatchObject({ name: 'fold', parentSpanContext: { spanId: idOf(7) }, links: [] });
  expect(inside).toBe(`00-4bf92f3577b34da6a3ce929d0e0e4736-${span?.spanContext().spanId}-01`);
});

test('work that several spans have caused is a trace of its own, with a link to each, at most 32', async () => {
  const causes = causesOf(Array.from({ length: 5000 }, (_, number) => cause(Math.floor(number / 2) + 1)));
  await traced('what is under way here', {}, () => tracedEffect('fold', {}, causes, async () => {}));
  const [span] = exporter.getFinishedSpans();
  expect(span?.parentSpanContext).toBeUndefined();
  expect(span?.links.map((link) => link.context.spanId)).toEqual(Array.from({ length: 32 }, (_, n) => idOf(n + 1)));
});

test('nothing is recorded of work whose causes were not', async () => {
  expect(causesOf([undefined, 'other', cause(1, '00'), cause(2), cause(2)])).toEqual([cause(2)]);
  const inside = await traced('what is under way here', {}, () =>
    tracedEffect('fold', {}, causesOf([cause(1, '00')]), async () => [traceparent(), recordedTrace()]),
  );
  expect(inside).toEqual([undefined, undefined]);
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['what is under way here']);
});

test('what continues a trace that is not recorded is not recorded either, and passes it on', async () => {
  const within = traceOf(cause(1, '00'));
  const inside = await traced('append', { within }, async () => [traceparent(), recordedTraceparent()]);
  expect(inside).toEqual([expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-00$/), null]);
  expect(exporter.getFinishedSpans()).toEqual([]);
});

test('a failed span has the code of its error, and not its message, which may hold values', async () => {
  const error = Object.assign(new Error('ada@example.test is taken'), { code: 'COMMAND_REJECTED' });
  await expect(traced('command', {}, () => Promise.reject(error))).rejects.toBe(error);
  const [span] = exporter.getFinishedSpans();
  expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'COMMAND_REJECTED' }, events: [] });
  expect(span?.status.message).toBeUndefined();
  expect(isTracing).toBe(true);
});

test.each([
  [`select "a" from "read_models"."cart_v1" where "b" = 'x.y' limit $1`, 'SELECT read_models.cart_v1'],
  [
    'with moved as (update refold.processors set x = $1 returning *) insert into refold.runs select * from moved',
    'UPDATE refold.processors INSERT refold.runs',
  ],
  ['delete from only refold.changes using refold.runs as r', 'DELETE refold.changes SELECT refold.runs'],
  ['begin isolation level read committed; set local x = 1', 'BEGIN'],
  ['insert into a.b values ($1) on conflict do update set c = (select d from a.e)', 'INSERT a.b SELECT a.e'],
])('the summary of a statement says what it does to what: %s', (text, summary) => {
  expect(summaryOf(text)).toBe(summary);
});
