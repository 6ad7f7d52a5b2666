import type { EventEmitter } from 'node:events';
import type * as OpenTelemetry from '@opentelemetry/api';

/** Describes a span. Names, counts and positions, never values of events, rows or variables. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A span that is under way. */
export interface Span {
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed, without the error's message: it may hold values. */
  fail(errorType: string): void;
}

/** A span that the caller ends. */
export interface OpenSpan extends Span {
  /** Runs work that is part of the span. */
  run<T>(work: () => T): T;
  /** Makes the listeners of an emitter part of the span, which are added from now on. */
  bind(emitter: EventEmitter): void;
  end(): void;
}

export interface SpanOptions {
  readonly kind?: 'server' | 'client' | 'producer' | 'consumer';
  readonly attributes?: SpanAttributes;
  /** The span that this one belongs to. @default what is under way */
  readonly within?: Trace | undefined;
  /** When it began, by `performance.now()`. @default now */
  readonly startedAt?: number | undefined;
}

declare const isTrace: unique symbol;

/** Something under way that is traced, to continue it later. Opaque: it is a context of OpenTelemetry, whose types a user may not have. */
export interface Trace {
  readonly [isTrace]: true;
}

interface Tracing {
  readonly api: typeof OpenTelemetry;
  readonly tracer: OpenTelemetry.Tracer;
}

// One for the process, as OpenTelemetry's own registration is.
let tracing: Tracing | undefined;

/** Whether spans are recorded. Frequent work looks here first: then tracing costs nothing where it is off. */
export let isTracing = false;

/** Switches tracing on if the program has registered an SDK of OpenTelemetry. Otherwise nothing is loaded, and nothing is traced. */
export async function startTracing(): Promise<void> {
  if (tracing || !isRegistered()) return;
  const api = await import('@opentelemetry/api');
  tracing = { api, tracer: api.trace.getTracer('refold') };
  isTracing = true;
}

/** OpenTelemetry shares its registration under this symbol between all copies of its API of one major version. */
function isRegistered(): boolean {
  const registered: unknown = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'));
  return typeof registered === 'object' && registered !== null && 'trace' in registered;
}

/** Runs work in a span. Without tracing, it only runs the work. */
export function traced<T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> {
  return tracing ? inSpan(openSpan(name, options), work) : work(noSpan);
}

/**
 * Runs work that other work has caused: in a span within the cause if there is one, and in a span of its own with links if there are
 * several. If no cause was recorded, there is no span. What is under way in this process is not its cause.
 *
 * @param causes from {@link causesOf}
 */
export function tracedEffect<T>(
  name: string,
  options: Omit<SpanOptions, 'within'>,
  causes: readonly string[],
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (!tracing) return work(noSpan);
  const { api } = tracing;
  const [first, ...others] = causes.map((cause) => parsed(cause)).filter((cause) => cause !== undefined);
  if (!first) return api.context.with(api.ROOT_CONTEXT, () => work(noSpan));
  const within = asTrace(others.length > 0 ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, first));
  const links = others.length > 0 ? [first, ...others].map((context) => ({ context })) : [];
  return inSpan(openSpan(name, { ...options, within }, links), work);
}

/** Runs work that is not part of what is under way, such as a periodic task that the first request has started. */
export function untraced<T>(work: () => T): T {
  return tracing ? tracing.api.context.with(tracing.api.ROOT_CONTEXT, work) : work();
}

// More links help nobody, and a batch may have thousands of causes.
const mostCauses = 32;

/** The different recorded causes among these `traceparent`s, at most 32. */
export function causesOf(traceparents: Iterable<unknown>): readonly string[] {
  const causes = new Set<string>();
  for (const text of traceparents) {
    if (typeof text === 'string' && isRecorded(text)) causes.add(text);
    if (causes.size === mostCauses) break;
  }
  return [...causes];
}

/** Begins a span that the caller ends. Only while {@link isTracing}. */
export function beginSpan(name: string, options: SpanOptions): OpenSpan {
  return openSpan(name, options);
}

/** What is under way, if it is recorded. */
export function recordedTrace(): Trace | undefined {
  if (!tracing) return undefined;
  const { api } = tracing;
  const active = api.context.active();
  return api.trace.getSpan(active)?.isRecording() ? asTrace(active) : undefined;
}

/** The trace that the headers of a request continue, in any format that the program's propagator reads. */
export function traceOfHeaders(headers: Readonly<Record<string, unknown>>): Trace | undefined {
  if (!tracing) return undefined;
  const { propagation, ROOT_CONTEXT } = tracing.api;
  return asTrace(propagation.extract(ROOT_CONTEXT, headers));
}

/** What is under way as a W3C `traceparent`; undefined if nothing is. */
export function traceparent(): string | undefined {
  if (!tracing) return undefined;
  const { api } = tracing;
  const context = api.trace.getSpanContext(api.context.active());
  if (!context || !api.isSpanContextValid(context)) return undefined;
  return `00-${context.traceId}-${context.spanId}-${(context.traceFlags & 1) === 1 ? '01' : '00'}`;
}

/** The names of what is under way as OpenTelemetry's conventions add them to lines of a log, so that a line leads to its trace. */
export function traceFields(): { readonly trace_id: string; readonly span_id: string } | undefined {
  const [, traceId, spanId] = w3c.exec(traceparent() ?? '') ?? [];
  return traceId === undefined || spanId === undefined ? undefined : { trace_id: traceId, span_id: spanId };
}

/** Like {@link traceparent}, if it is recorded; else null. */
export function recordedTraceparent(): string | null {
  const text = traceparent();
  return text !== undefined && isRecorded(text) ? text : null;
}

const w3c = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Whether the text is a W3C `traceparent`. */
export function isTraceparent(text: string): boolean {
  return w3c.test(text);
}

function isRecorded(text: string): boolean {
  return (Number.parseInt(w3c.exec(text)?.[3] ?? '0', 16) & 1) === 1;
}

function parsed(text: string): OpenTelemetry.SpanContext | undefined {
  const [, traceId, spanId, flags] = w3c.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return tracing?.api.isSpanContextValid(context) ? context : undefined;
}

/** The trace of a `traceparent`. */
export function traceOf(text: string | undefined): Trace | undefined {
  const context = text === undefined ? undefined : parsed(text);
  return context && tracing && asTrace(tracing.api.trace.setSpanContext(tracing.api.ROOT_CONTEXT, context));
}

/** The trace of a `traceparent`, unless something is under way in this process, which knows more. */
export function continuedTrace(text: string | undefined): Trace | undefined {
  return traceparent() === undefined ? traceOf(text) : undefined;
}

const asTrace = (context: OpenTelemetry.Context) => context as unknown as Trace;
const contextOf = (trace: Trace) => trace as unknown as OpenTelemetry.Context; // asTrace created it

async function inSpan<T>(span: OpenSpan, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await span.run(() => work(span));
  } catch (error) {
    span.fail(errorTypeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/** The code of an error, else the name of its class. */
function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

function openSpan(name: string, options: SpanOptions, links: readonly OpenTelemetry.Link[] = []): OpenSpan {
  if (!tracing) return noSpan;
  const { api, tracer } = tracing;
  const { kind, attributes = {}, startedAt } = options;
  const within = options.within ? contextOf(options.within) : api.context.active();
  const span = tracer.startSpan(
    name,
    {
      kind: kind === undefined ? api.SpanKind.INTERNAL : kinds(api)[kind],
      attributes,
      links: [...links],
      ...(startedAt === undefined ? {} : { startTime: startedAt }),
    },
    within,
  );
  const context = api.trace.setSpan(within, span);
  return {
    set: (more) => void span.setAttributes(more),
    fail(errorType) {
      span.setAttribute('error.type', errorType);
      span.setStatus({ code: api.SpanStatusCode.ERROR });
    },
    run: (work) => api.context.with(context, work),
    bind: (emitter) => void api.context.bind(context, emitter),
    end: () => span.end(),
  };
}

function kinds({ SpanKind }: typeof OpenTelemetry) {
  return {
    server: SpanKind.SERVER,
    client: SpanKind.CLIENT,
    producer: SpanKind.PRODUCER,
    consumer: SpanKind.CONSUMER,
  } as const;
}

const noSpan: OpenSpan = {
  set() {},
  fail() {},
  run: (work) => work(),
  bind() {},
  end() {},
};
