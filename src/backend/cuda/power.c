/* Power, energy and the activity of units from NVIDIA's management library, which comes with the driver and is loaded
 * if it is there.
 *
 * Volta and later count energy themselves (in millijoules, some tens of milliseconds behind). Where the counter is
 * missing, power is read at each call and summed as trapezoids between calls: callers that want a good figure ask a few
 * times a second. Hopper and later count how long their units are at work. The prototypes are written out here, since
 * the toolkit does not always bring that header.
 */
#include "backend/cuda/info.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/threads.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

typedef struct handle *device_handle; // opaque
enum { SUCCESS = 0 };

/* Two samples of the counters, and what is asked about the span between them. */
typedef struct sample *sample_handle; // opaque
enum { METRIC_MULTIPROCESSORS = 2, METRIC_TENSOR_CORES = 5, METRIC_MEMORY = 10, METRICS_ASKED = 3, METRICS_ROOM = 512 };

typedef struct metric {
    unsigned id;
    int status;
    double percent;
    char *names[3];
} metric;

typedef struct metrics {
    unsigned version, count;
    sample_handle before, after;
    metric list[METRICS_ROOM]; // more than any driver's own declaration has
} metrics;

/** Of one GPU. */
struct mixt__cuda_meter {
    device_handle device;        // NULL: not known
    sample_handle before, after; // NULL: units are not counted
    metrics request;
    bool counts; // the device has an energy counter
    unsigned long long origin;
    double joules, watts, time; // of the fallback: up to `time`, when `watts` was read
};
typedef struct mixt__cuda_meter meter;

/** The library's functions; written once. */
static struct {
    int (*by_bus)(const char *bus, device_handle *device);
    int (*total_energy)(device_handle device, unsigned long long *millijoules);
    int (*power)(device_handle device, unsigned *milliwatts);
    int (*power_limit)(device_handle device, unsigned *milliwatts);
    int (*driver_version)(char *text, unsigned size);
    int (*support)(device_handle device, unsigned version_and_answer[2]);
    int (*sample_alloc)(sample_handle *sample);
    int (*sample_get)(device_handle device, sample_handle sample);
    int (*metrics_get)(metrics *request);
} nvml;

static void load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        MIXT_LOG(PLAN, "no power figures: %s", dlerror());
        return;
    }
    int (*init)(void) = dlsym(library, "nvmlInit_v2");
    if (!init || init() != SUCCESS)
        return;
    nvml.by_bus = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    nvml.total_energy = dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
    nvml.power = dlsym(library, "nvmlDeviceGetPowerUsage");
    nvml.power_limit = dlsym(library, "nvmlDeviceGetEnforcedPowerLimit");
    nvml.driver_version = dlsym(library, "nvmlSystemGetDriverVersion");
    nvml.support = dlsym(library, "nvmlGpmQueryDeviceSupport");
    nvml.sample_alloc = dlsym(library, "nvmlGpmSampleAlloc");
    nvml.sample_get = dlsym(library, "nvmlGpmSampleGet");
    nvml.metrics_get = dlsym(library, "nvmlGpmMetricsGet");
}

static void load_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
}

/** The library numbers devices in its own way: the bus says which one CUDA means. NULL: it does not know. */
static device_handle find_device(int number)
{
    char bus[32];
    device_handle device = NULL;
    load_once();
    bool found = nvml.by_bus && cudaDeviceGetPCIBusId(bus, sizeof bus, number) == cudaSuccess &&
                 nvml.by_bus(bus, &device) == SUCCESS;
    return found ? device : NULL;
}

static void find_counters(meter *m)
{
    unsigned answer[2] = {1, 0};
    bool there = m->device && nvml.support && nvml.sample_alloc && nvml.sample_get && nvml.metrics_get &&
                 nvml.support(m->device, answer) == SUCCESS && answer[1];
    if (!there || nvml.sample_alloc(&m->before) != SUCCESS || nvml.sample_alloc(&m->after) != SUCCESS)
        m->before = m->after = NULL;
}

/** Made at the first call; NULL: there is no memory. */
static meter *meter_of(mixt__device *device)
{
    mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    meter *m = gpu->meter ? gpu->meter : mixt__alloc(sizeof *m);
    if (gpu->meter || !m)
        return m;
    m->device = find_device(device->number);
    find_counters(m);
    m->counts = m->device && nvml.total_energy && nvml.total_energy(m->device, &m->origin) == SUCCESS && m->origin;
    m->time = mixt__time_now();
    m->watts = NAN;
    return gpu->meter = m;
}

/** Energy from power read now and at the last call. */
static double sampled(meter *m)
{
    unsigned milliwatts;
    if (!m->device || !nvml.power || nvml.power(m->device, &milliwatts) != SUCCESS)
        return NAN;
    double now = mixt__time_now(), watts = 1e-3 * milliwatts;
    if (!isnan(m->watts))
        m->joules += (watts + m->watts) / 2 * (now - m->time);
    m->watts = watts;
    m->time = now;
    return m->joules;
}

double mixt__cuda_energy(mixt__device *device)
{
    unsigned long long now;
    meter *m = meter_of(device);
    if (!m || !m->counts)
        return m ? sampled(m) : (double)NAN;
    return nvml.total_energy(m->device, &now) == SUCCESS ? 1e-3 * (double)(now - m->origin) : (double)NAN;
}

bool mixt__cuda_activity(mixt__device *device, mixt__device_activity *since)
{
    meter *m = meter_of(device);
    if (!m || !m->after)
        return false;
    if (!since)
        return nvml.sample_get(m->device, m->before) == SUCCESS;
    if (nvml.sample_get(m->device, m->after) != SUCCESS)
        return false;
    metrics *request = &m->request;
    *request = (metrics){.version = 1, .count = METRICS_ASKED, .before = m->before, .after = m->after};
    request->list[0].id = METRIC_MULTIPROCESSORS;
    request->list[1].id = METRIC_TENSOR_CORES;
    request->list[2].id = METRIC_MEMORY;
    if (nvml.metrics_get(request) != SUCCESS)
        return false;
    for (int i = 0; i < METRICS_ASKED; i++)
        if (request->list[i].status != SUCCESS)
            return false;
    since->multiprocessors = request->list[0].percent / 100;
    since->tensor_cores = request->list[1].percent / 100;
    since->memory = request->list[2].percent / 100;
    return true;
}

double mixt__cuda_power_limit(int number)
{
    unsigned milliwatts;
    device_handle device = find_device(number);
    bool known = device && nvml.power_limit && nvml.power_limit(device, &milliwatts) == SUCCESS;
    return known ? 1e-3 * milliwatts : (double)NAN;
}

void mixt__cuda_driver_version(char *text, size_t size)
{
    load_once();
    if (!nvml.driver_version || nvml.driver_version(text, (unsigned)size) != SUCCESS)
        text[0] = '\0';
}
