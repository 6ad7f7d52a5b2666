import { collectDefaultMetrics, type Registry } from 'prom-client';

/**
 * How often the event loop is asked for its delay, in milliseconds. Each time wakes the process: at the library's 10 ms, that is half of what a
 * process at rest costs. An event loop without any delay is reported with this one.
 */
const eventLoopMonitoringPrecision = 50;

/** Collects memory, CPU time, event loop and garbage collection. An application's own registry may do so already. */
export function collectProcessMetrics(registry: Registry): void {
  if (registry.getSingleMetric('process_cpu_seconds_total')) return;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision });
}
